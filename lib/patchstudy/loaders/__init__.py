"""One module per tool; each offers ``sniff`` and ``load``; this file is their list.

To add a loader: write the module, add one line to ``LOADERS``, and put a raw file with
its expected values under ``tests/golden/loaders/<tool>/``. Modules that are no loaders:
``text``, ``paste``, ``reading``, ``documents``, ``interfaces``, ``link_text``,
``per_cpu``, ``queueing``, ``cpu_shares`` and ``sysstat``, which several loaders share;
``netperf_lines``, ``netperf_text`` and ``omni``, parts of ``netperf``; ``flent_page``
and ``flent_series``, parts of ``flent``; ``ping_words``, one of ``ping``, and
``fping_intervals``, one of ``fping``; ``mpstat_plain`` and ``sadf_xml``, parts of the
loaders of that name; ``perf_row``, ``perf_text``,
``perf_csv`` and ``perf_json``, parts of ``perf_stat``; ``perf_table``, which
``perf_report`` and ``perf_diff`` share; ``pairs``, and its parts ``cpu_time`` and
``call_times``; ``packed``, which reads compressed files and archives; ``plausible``,
which checks what every loader returns; ``noted``, which notes the file that is read;
``parsed``, which keeps what large traces say.
"""

import csv
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol

from patchstudy.blocks import large
from patchstudy.errors import CaptureError, UnknownToolError
from patchstudy.loaders import (
    bpftrace,
    counters,
    cpuinfo,
    dmesg,
    dropwatch,
    ethr,
    ethtool_i,
    ethtool_k,
    ethtool_s,
    ethtool_settings,
    flent,
    folded,
    fping,
    ftrace,
    ftrace_graph,
    ftrace_profile,
    h2load,
    ip_link,
    iperf2,
    iperf2_csv,
    iperf3,
    iperf3_text,
    irtt,
    kernel_config,
    kprobe_profile,
    lscpu,
    measurements,
    meminfo,
    mpstat,
    netperf,
    nstat,
    ntttcp,
    ntttcp_linux,
    nuttcp,
    packed,
    parsed,
    paste,
    perf_diff,
    perf_report,
    perf_script,
    perf_stat,
    pidstat,
    ping,
    ping_windows,
    pktgen,
    plausible,
    proc_interrupts,
    proc_net_dev,
    proc_net_snmp,
    proc_softirqs,
    proc_stat,
    qperf,
    run_json,
    sadf,
    sar,
    slabinfo,
    sockperf,
    softnet_stat,
    ss,
    sysctl,
    tc_class,
    tc_qdisc,
    testpmd,
    top,
    trace_hist,
    trace_stats,
    trex,
    trex_screen,
    turbostat,
    uname,
    uperf,
    uptime,
    vmstat,
    wrk,
)
from patchstudy.loaders.noted import noted
from patchstudy.loaders.pairs import difference
from patchstudy.loaders.text import of_whole_letters, refuse_long_lines
from patchstudy.metrics import metric
from patchstudy.records import Capture, Caveat, RawFile, Severity

__all__ = [
    "LOADERS",
    "MAX_BYTES",
    "Loader",
    "as_json",
    "difference",
    "load",
    "load_all",
    "load_raw",
    "read",
    "read_all",
    "taker",
]

_TOO_LARGE: Final = "holds a number or a field that is too large; is the file damaged?"
#: Largest raw file, on disk and uncompressed, that is read whole; also the most that
#: the members of an archive may be together.
MAX_BYTES: Final = 256 * 2**20


class Loader(Protocol):
    """What every loader module offers.

    One may offer ``OPENS`` besides, a pattern with which only its tool's files begin:
    where it matches, no other loader is asked, which saves time. One of traces may
    offer ``load_large``, which reads a file of any size (``blocks.large``).
    """

    def sniff(self, raw: RawFile, /) -> bool:
        """Say whether the bytes are this tool's output."""
        ...

    def load(self, raw: RawFile, /) -> Capture:
        """Read one raw file.

        Raises
        ------
        CaptureError
            If the file cannot be read as this tool's output.
        """
        ...


#: The tool's name -> its module. Every one whose ``sniff`` says yes is a candidate.
LOADERS: Final[dict[str, Loader]] = {
    "bpftrace": bpftrace,
    "counters": counters,
    "cpuinfo": cpuinfo,
    "dmesg": dmesg,
    "dropwatch": dropwatch,
    "ethr": ethr,
    "ethtool_i": ethtool_i,
    "ethtool_k": ethtool_k,
    "ethtool_s": ethtool_s,
    "ethtool_settings": ethtool_settings,
    "flent": flent,
    "folded": folded,
    "fping": fping,
    "ftrace": ftrace,
    "ftrace_graph": ftrace_graph,
    "ftrace_profile": ftrace_profile,
    "h2load": h2load,
    "ip_link": ip_link,
    "iperf2": iperf2,
    "iperf2_csv": iperf2_csv,
    "iperf3": iperf3,
    "iperf3_text": iperf3_text,
    "irtt": irtt,
    "kernel_config": kernel_config,
    "kprobe_profile": kprobe_profile,
    "lscpu": lscpu,
    "measurements": measurements,
    "meminfo": meminfo,
    "mpstat": mpstat,
    "netperf": netperf,
    "nstat": nstat,
    "ntttcp": ntttcp,
    "ntttcp_linux": ntttcp_linux,
    "nuttcp": nuttcp,
    "perf_diff": perf_diff,
    "perf_report": perf_report,
    "perf_script": perf_script,
    "perf_stat": perf_stat,
    "pidstat": pidstat,
    "ping": ping,
    "ping_windows": ping_windows,
    "pktgen": pktgen,
    "proc_interrupts": proc_interrupts,
    "proc_net_dev": proc_net_dev,
    "proc_net_snmp": proc_net_snmp,
    "proc_softirqs": proc_softirqs,
    "proc_stat": proc_stat,
    "qperf": qperf,
    "run.json": run_json,
    "sadf": sadf,
    "sar": sar,
    "slabinfo": slabinfo,
    "sockperf": sockperf,
    "softnet_stat": softnet_stat,
    "ss": ss,
    "sysctl": sysctl,
    "tc_class": tc_class,
    "tc_qdisc": tc_qdisc,
    "testpmd": testpmd,
    "top": top,
    "trace_hist": trace_hist,
    "trace_stats": trace_stats,
    "trex": trex,
    "trex_screen": trex_screen,
    "turbostat": turbostat,
    "uname": uname,
    "uperf": uperf,
    "uptime": uptime,
    "vmstat": vmstat,
    "wrk": wrk,
}

_NO_CLOCK: Final = Caveat(
    code="clock-unknown",
    severity=Severity.NOTE,
    text="the file does not tell when the test started",
)
_PASTE: Final = Caveat(
    code="paste",
    severity=Severity.NOTE,
    text="what stands around the output (indent, marks, time stamps) was taken off",
)
#: No paste is larger.
_LARGEST_PASTE: Final = 4 * 2**20
#: How much of an unknown file's first line is quoted.
_BEGINNING: Final = 60
_BINARY: Final = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_NO_FILE: Final = "not a file; give the raw file of one tool"
_OPENS: Final[dict[str, re.Pattern[str]]] = {
    name: loader.OPENS  # type: ignore[attr-defined]
    for name, loader in LOADERS.items()
    if hasattr(loader, "OPENS")
}


def read(path: Path) -> RawFile:
    """Read the bytes of a raw file; of a compressed or archived one, what it holds.

    Raises
    ------
    CaptureError
        If the file cannot be read, is larger than ``MAX_BYTES``, is cut, or is an
        archive of anything but one file.
    """
    return _one(path, None)


def _one(path: Path, told: os.stat_result | None) -> RawFile:
    """Read a file that the system told of; see ``read``."""
    data = _content(path, told)
    digest = sha256(data).hexdigest()
    if not packed.packs(data):
        return RawFile(path=path, data=data, digest=digest)
    found = list(_members(path, data, digest))
    several = [one for one in found if not isinstance(one, CaptureError)]
    if len(several) > 1:
        problem = f"an archive of {len(several)} files; unpack it, or read it with load"
        raise CaptureError(path, problem)
    for one in found:
        if isinstance(one, CaptureError):
            raise one
    if several[0].path is path:
        return several[0]
    return RawFile(path=path, data=several[0].data, digest=several[0].digest)


def read_all(path: Path) -> Iterator[RawFile | CaptureError]:
    """Yield every raw file that a file holds; for one that cannot be read, the error.

    A file that is no archive, or an archive of one file, has its own path; of several
    members each has the path ``archive/member``. All have the digest of the bytes on
    disk. No error is raised.
    """
    try:
        found = _read(path)
        first = next(found)
        second = next(found, None)
        if second is None and isinstance(first, RawFile):
            first = RawFile(path=path, data=first.data, digest=first.digest)
        yield first
        if second is not None:
            yield second
        yield from found
    except CaptureError as error:
        yield error


def load(path: Path) -> Capture:
    """Read a raw file with the one loader that recognises its content.

    Raises
    ------
    CaptureError
        If the file is empty, if no loader or more than one recognises it, if its
        loader finds it broken or holds what cannot be (``plausible``), or if it is an
        archive of several files.
    """
    with noted(path):
        told = _told(path)
        return _load_large(path, told) or _load_one(_one(path, told))


def _load_one(raw: RawFile) -> Capture:
    """Read a file in memory, a trace only if it was not kept before."""
    if len(raw.data) < parsed.WORTH or not _is_trace(LOADERS[taker(raw)]):
        return load_raw(raw)
    return parsed.kept(raw.digest, raw.path, lambda: load_raw(raw))


def _is_trace(loader: Loader) -> bool:
    return hasattr(loader, "load_large")


def _told(path: Path) -> os.stat_result | None:
    """Return what the system tells of a file; None where it tells nothing."""
    try:
        return os.stat(path)  # noqa: PTH116 - Path's own costs twice as much
    except (OSError, ValueError):
        return None  # ``_read`` asks again, and says why


def _load_large(path: Path, told: os.stat_result | None) -> Capture | None:
    """Read a file of a trace that is too large for the memory; None for any other."""
    if told is None or told.st_size <= large.LARGE:
        return None
    able = [one for one in LOADERS.values() if _is_trace(one)]
    try:
        head = large.beginning(path)
        takers = [one for one in able if head and one.sniff(head)]
        # Only then is it worth while to take the digest of many GB.
        file = large.large(path) if len(takers) == 1 else None
    except (OSError, ValueError):
        return None  # ``read`` says why
    if file is None:
        return None

    def read() -> Capture:
        found: Capture = getattr(takers[0], "load_large")(file)  # noqa: B009
        return plausible.checked(found)

    return parsed.kept(file.head.digest, path, read)


def load_all(path: Path) -> Iterator[Capture | CaptureError]:
    """Yield the capture of every raw file that a file holds, or why there is none.

    See ``read_all``; no error is raised.
    """
    try:
        found = _load_large(path, _told(path))
    except CaptureError as error:
        yield error
        return
    if found:
        yield found
        return
    for raw in read_all(path):
        if isinstance(raw, CaptureError):
            yield raw
            continue
        try:
            yield load_raw(raw)
        except CaptureError as error:
            yield error


def taker(raw: RawFile) -> str:
    """Return the name of the one loader that recognises a raw file.

    Raises
    ------
    CaptureError
        If the file is empty, or if no loader or more than one recognises it.
    """
    return _recognised(of_whole_letters(raw))[0]


def _recognised(raw: RawFile) -> tuple[str, RawFile]:
    """Return the loader of a file, and the file as it can read it.

    A file that is unknown as it is may be a paste: what stands around it is taken off.
    """
    for name, opens in _OPENS.items():
        if opens.match(raw.head):
            return name, raw
    if not raw.data.strip(b"\0 \t\r\n"):
        raise CaptureError(raw.path, "empty file; did the tool fail or get killed?")
    if name := _one_taker(raw):
        return name, raw
    if len(raw.data) <= _LARGEST_PASTE and b"\0" not in raw.data:
        text = paste.cleaned(raw.text)
        bare = RawFile(path=raw.path, data=text.encode(), digest=raw.digest)
        if text != raw.text and (name := _one_taker(bare)):
            return name, bare
    raise UnknownToolError(raw.path, _unknown(raw))


def _one_taker(raw: RawFile) -> str | None:
    names = [name for name, loader in LOADERS.items() if loader.sniff(raw)]
    if len(names) > 1:
        raise CaptureError(
            raw.path, f"recognised as {' and as '.join(names)}; please report this file"
        )
    return names[0] if names else None


def _unknown(raw: RawFile) -> str:
    """Say that a file is of no known tool, and how it begins (it may be an error)."""
    line = next((one for one in map(str.strip, raw.head.split("\n")) if one), "")
    begins = f"; it begins {line[:_BEGINNING]!a}" if line.isprintable() else ""
    return f"no loader recognises it{begins}; known tools: {', '.join(sorted(LOADERS))}"


def load_raw(raw: RawFile) -> Capture:
    """Return what a raw file in memory says; see ``load``."""
    raw = of_whole_letters(raw)
    name, bare = _recognised(raw)
    refuse_long_lines(raw)
    try:
        found, bare = _loaded(name, raw, bare)
        return found if bare is raw else _noted(found, _PASTE)
    except (csv.Error, OverflowError, RecursionError) as error:
        raise CaptureError(raw.path, f"{_TOO_LARGE} ({error})") from error
    except ValueError as error:
        if "integer string conversion" not in str(error):  # Python's limit of digits
            raise
        raise CaptureError(raw.path, _TOO_LARGE) from error


def _loaded(name: str, raw: RawFile, bare: RawFile) -> tuple[Capture, RawFile]:
    """Load a file; one that is refused once more without the marks of every line."""
    loader = LOADERS[name]
    try:
        return _clocked(plausible.checked(loader.load(bare))), bare
    except CaptureError:
        if bare is not raw or len(raw.data) > _LARGEST_PASTE or b"\0" in raw.data:
            raise
        text = paste.unmarked(raw.text)
        if text == raw.text.replace("\r\n", "\n"):
            raise
        bare = RawFile(path=raw.path, data=text.encode(), digest=raw.digest)
        if not loader.sniff(bare):
            raise
        return _clocked(plausible.checked(loader.load(bare))), bare


def _clocked(capture: Capture) -> Capture:
    """Say of a test that its start is not known, where its loader gives no reason."""
    if capture.started_at or "protocol" not in capture.workload:
        return capture
    if any(one.code == _NO_CLOCK.code for one in capture.caveats):
        return capture
    return _noted(capture, _NO_CLOCK)


def _noted(capture: Capture, caveat: Caveat) -> Capture:
    return replace(capture, caveats=(*capture.caveats, caveat))


def _read(path: Path) -> Iterator[RawFile | CaptureError]:
    """Yield every raw file that a file holds, each with the path in its archive."""
    data = _content(path, None)
    yield from _members(path, data, sha256(data).hexdigest())


def _members(path: Path, data: bytes, digest: str) -> Iterator[RawFile | CaptureError]:
    for one in packed.members(path, data, MAX_BYTES):
        if isinstance(one, CaptureError):
            yield one
        else:
            inner = path / one.name if one.name else path
            yield RawFile(path=inner, data=one.data, digest=digest)


def _content(path: Path, told: os.stat_result | None) -> bytes:
    """Return the bytes of a file that the system told of, if it did.

    Raises
    ------
    CaptureError
        If it is no file, cannot be read, or is larger than ``MAX_BYTES``.
    """
    try:
        told = told or os.stat(path)  # noqa: PTH116 - Path's own costs twice as much
        if not stat.S_ISREG(told.st_mode):
            raise CaptureError(path, _NO_FILE)
        data = _bytes(path, told.st_size) if told.st_size <= MAX_BYTES else None
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CaptureError(path, _NO_FILE) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise CaptureError(path, f"cannot be read ({reason})") from error
    if data is None or len(data) > MAX_BYTES:
        raise CaptureError(path, packed.too_large("file", MAX_BYTES))
    return data


def _bytes(path: Path, size: int) -> bytes:
    """Return the bytes of a file of this size, with as few system calls as can be.

    Files of /proc tell a size of 0, and others may grow; no more is read than
    ``MAX_BYTES`` and one.
    """
    file = os.open(path, _BINARY)
    try:
        data = os.read(file, size + 1 if size else 2**16)
        while data and len(data) != size and len(data) <= MAX_BYTES:
            more = os.read(file, 2**20)
            if not more:
                break
            data += more
        return data
    finally:
        os.close(file)


def as_json(capture: Capture) -> dict[str, object]:
    """Return a capture as the object that ``patchstudy load --format json`` prints.

    Call stacks are not contained; readings of counters are values of the whole file.
    """
    error = capture.error
    return {
        "path": str(capture.path),
        "sha256": capture.sha256,
        "tool": capture.tool,
        "tool_version": capture.tool_version,
        "workload": dict(capture.workload),
        "started_at": capture.started_at,
        "measurements": [
            {
                "metric": one.metric,
                "value": one.value,
                "unit": metric(one.metric).unit,
                "labels": dict(one.labels),
                "start_s": one.start_s,
                "end_s": one.end_s,
            }
            for one in capture.measurements
        ],
        "facts": dict(capture.facts),
        "caveats": [{"code": one.code, "text": one.text} for one in capture.caveats],
        "error": error and {"text": error.text, "where": error.where},
    }
