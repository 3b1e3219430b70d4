"""One module per tool; each offers ``sniff`` and ``load``; this file is their list.

To add a loader: write the module, add one line to ``LOADERS``, and put a raw file with
its expected values under ``tests/golden/loaders/<tool>/``. Modules that are no loaders:
``text``, ``paste``, ``reading``, ``documents``, ``interfaces``, ``link_text``,
``per_cpu``, ``queueing``, ``cpu_shares`` and ``sysstat``, which several loaders
share; ``omni``, a part of
``netperf``; ``perf_row``, ``perf_text``, ``perf_csv`` and ``perf_json``, parts of
``perf_stat``; ``pairs``, and ``cpu_time``, a part of it.
"""

import gzip
import io
import zlib
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol

from patchstudy.errors import CaptureError, UnknownToolError
from patchstudy.loaders import (
    counters,
    cpuinfo,
    dmesg,
    ethr,
    ethtool_i,
    ethtool_k,
    ethtool_s,
    ethtool_settings,
    flent,
    folded,
    fping,
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
    nuttcp,
    perf_stat,
    pidstat,
    ping,
    pktgen,
    proc_interrupts,
    proc_net_dev,
    proc_net_snmp,
    proc_softirqs,
    proc_stat,
    qperf,
    run_json,
    sadf,
    sar,
    sockperf,
    softnet_stat,
    ss,
    sysctl,
    tc_class,
    tc_qdisc,
    testpmd,
    top,
    trex,
    turbostat,
    uname,
    uperf,
    uptime,
    vmstat,
    wrk,
)
from patchstudy.loaders.pairs import difference
from patchstudy.metrics import metric
from patchstudy.records import Capture, RawFile

__all__ = ["LOADERS", "MAX_BYTES", "Loader", "as_json", "difference", "load", "read"]

#: Largest raw file, on disk and uncompressed, that is read whole.
MAX_BYTES: Final = 256 * 2**20


class Loader(Protocol):
    """What every loader module offers."""

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
    "counters": counters,
    "cpuinfo": cpuinfo,
    "dmesg": dmesg,
    "ethr": ethr,
    "ethtool_i": ethtool_i,
    "ethtool_k": ethtool_k,
    "ethtool_s": ethtool_s,
    "ethtool_settings": ethtool_settings,
    "flent": flent,
    "folded": folded,
    "fping": fping,
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
    "nuttcp": nuttcp,
    "perf_stat": perf_stat,
    "pidstat": pidstat,
    "ping": ping,
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
    "sockperf": sockperf,
    "softnet_stat": softnet_stat,
    "ss": ss,
    "sysctl": sysctl,
    "tc_class": tc_class,
    "tc_qdisc": tc_qdisc,
    "testpmd": testpmd,
    "top": top,
    "trex": trex,
    "turbostat": turbostat,
    "uname": uname,
    "uperf": uperf,
    "uptime": uptime,
    "vmstat": vmstat,
    "wrk": wrk,
}


def read(path: Path) -> RawFile:
    """Read the bytes of a raw file, uncompressed where it is gzipped.

    Raises
    ------
    CaptureError
        If the file cannot be read, is larger than ``MAX_BYTES``, or is cut gzip.
    """
    try:
        if not path.is_file():
            raise CaptureError(path, "not a file; give the raw file of one tool")
        if path.stat().st_size > MAX_BYTES:
            raise CaptureError(path, _too_large("file"))
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CaptureError(path, f"cannot be read ({reason})") from error
    digest = sha256(data).hexdigest()
    if data.startswith(b"\x1f\x8b"):
        data = _gunzip(path, data)
    return RawFile(path=path, data=data, digest=digest)


def load(path: Path) -> Capture:
    """Read a raw file with the one loader that recognises its content.

    Raises
    ------
    CaptureError
        If the file is empty, if no loader or more than one recognises it, or if its
        loader finds it broken.
    """
    raw = read(path)
    if not raw.data.strip(b"\0 \t\r\n"):
        raise CaptureError(path, "empty file; did the tool fail or get killed?")
    names = [name for name, loader in LOADERS.items() if loader.sniff(raw)]
    if not names:
        raise UnknownToolError(
            path,
            "no loader recognises it; known tools: " + ", ".join(sorted(LOADERS)),
        )
    if len(names) > 1:
        raise CaptureError(
            path, f"recognised as {' and as '.join(names)}; please report this file"
        )
    return LOADERS[names[0]].load(raw)


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


def _gunzip(path: Path, data: bytes) -> bytes:
    """Uncompress all members, reading no more than ``MAX_BYTES``."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            text = file.read(MAX_BYTES + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CaptureError(path, f"broken gzip ({error}); was it cut short?") from error
    if len(text) > MAX_BYTES:
        raise CaptureError(path, _too_large("uncompressed content"))
    return text


def _too_large(what: str) -> str:
    return f"{what} larger than {MAX_BYTES // 2**20} MiB; cut it or split it"
