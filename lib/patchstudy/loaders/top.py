"""Read the batch output of top: procps (``top -b``) and BusyBox.

What the values are (procps' ``top.c`` and ``library/stat.c``, BusyBox's
``procps/top.c``); only the summary of the CPUs is read, processes are not:

``cpu_busy``, ``cpu_softirq``
    All but idle and waiting for I/O; ``si`` or ``sirq``. Where every CPU has its own
    line (``top -1``) the machine is the mean over them, and ``cpu_busy_max`` is told.

The first iteration of procps is no part of the run: means since boot in old versions,
a blink of an eye in new ones. Its values carry the label ``span``. The others become
intervals by the time of day in their first line (whole seconds, local time). BusyBox
looks at 0.1 s for its first one and has no clock: all its iterations count the same in
the mean, without intervals. Decimal commas and translated heads are read as such; the
translated names of the shares are told by their order.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import cpu_shares
from patchstudy.loaders.cpu_shares import Record
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, RawFile

_START: Final = re.compile(r"^top - (\d\d):(\d\d):(\d\d) up ")
_MEMORY: Final = re.compile(r"^Mem: \d+K used, \d+K free\b")
_SHARE: Final = re.compile(
    r"(\d{1,3}(?:[.,]\d{1,2})?) ?%? ?"
    r"(us|sy|ni|id|wa|hi|si|st|usr|sys|nic|idle|io|irq|sirq)\b"
)
#: A share in any language; procps keeps the order of English.
_ANY_SHARE: Final = re.compile(r"(\d{1,3}(?:[.,]\d{1,2})?) ?([^\W\d]{2,12})")
_ORDER: Final = ("us", "sy", "ni", "id", "wa", "hi", "si", "st")
_CPUS: Final = re.compile(r"(?:%\S|C[Pp][Uu])[^:]{0,16}:")
_PROCESSES: Final = re.compile(r"^ *PID +")
_NAMES: Final = {
    "usr": "us", "sys": "sy", "nic": "ni", "idle": "id", "io": "wa", "irq": "hi",
    "sirq": "si",
}  # fmt: skip
_COLUMNS: Final = {
    "us": "usr", "sy": "sys", "ni": "nice", "id": "idle", "wa": "iowait", "hi": "irq",
    "si": "soft", "st": "steal",
}  # fmt: skip
_NEEDED: Final = {"us", "sy", "id"}


def sniff(raw: RawFile) -> bool:
    """Say whether it starts as an iteration of procps or of BusyBox."""
    lines = plain_head(raw)
    if any(_START.match(line) for line in lines[:2]):
        return True
    return len(lines) > 1 and bool(
        _MEMORY.match(lines[0]) and lines[1].startswith("CPU")
    )


def load(raw: RawFile) -> Capture:
    """Read the summary of every iteration.

    Raises
    ------
    CaptureError
        If a line of shares cannot be read, or there is none.
    """
    iterations = _iterations(raw)
    busybox = iterations[0].time is None
    first, others = ([], iterations) if busybox else (iterations[:1], iterations[1:])
    resolution = 0.01 if busybox else 0.001
    reading = Reading()
    over = _whole(first, {"span": "first iteration"}, resolution, reading)
    if others:
        over = _whole(others, {}, resolution, reading)
        reading.measurements.extend(
            cpu_shares.intervals(_records(iterations), resolution)
        )
    else:
        reading.doubt(
            "first-iteration-only",
            "the first iteration of top is no part of the run",
            "Call top with -n 2 at least.",
        )
    cut = sorted({cpu for one in iterations for cpu in one.cut})
    if cut:
        reading.doubt(
            "cpus-cut",
            f"top cut the line of CPU {', '.join(cut)}; the whole machine is absent",
            "Call top with -w 512.",
        )
    reading.caveats.extend(cpu_shares.caveats(over, None))
    reading.caveats.extend(line_end(raw))
    reading.note("clock-unknown", "top writes local time without date and zone")
    busiest = cpu_shares.busiest(over)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="top",
        workload={"iterations": len(iterations)},
        measurements=tuple(reading.measurements),
        facts={
            "busybox": busybox,
            "process_rows": sum(one.processes for one in iterations),
            **({} if busiest is None else {"busiest_cpu": busiest}),
        },
        caveats=tuple(reading.caveats),
    )


@dataclass(slots=True, kw_only=True)
class _Iteration:
    """One screen: its time of day, shares by CPU, and number of processes.

    ``cut`` names the CPUs whose line top cut at the width of the screen.
    """

    time: int | None
    where: str
    cpus: dict[str, dict[str, float]] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)
    listed: bool = False
    processes: int = 0


def _iterations(raw: RawFile) -> list[_Iteration]:
    iterations: list[_Iteration] = []
    for number, line in plain(raw.text):
        match = _START.match(line)
        if match or _MEMORY.match(line):
            hour, minute, second = map(int, match.groups()) if match else (0, 0, 0)
            time = hour * 3600 + minute * 60 + second if match else None
            iterations.append(_Iteration(time=time, where=str(number)))
        elif iterations and line.strip():
            _line(raw, iterations[-1], (number, line))
    for one in iterations:
        _mean(one)
    missing = [one.where for one in iterations if not one.cpus]
    if missing or not iterations:
        problem = "no line with the shares of the CPUs; was it cut short?"
        raise CaptureError(raw.path, problem, where=missing[0] if missing else None)
    return iterations


def _line(raw: RawFile, iteration: _Iteration, numbered: tuple[int, str]) -> None:
    """Take in a line below the first of an iteration."""
    number, line = numbered
    if iteration.listed:
        iteration.processes += 1
    elif _PROCESSES.match(line):
        iteration.listed = True
    elif _CPUS.match(line):
        for part in re.split(r"(?<=\S) {2,}(?=%?C[Pp][Uu]\d)", line):
            _cpu(raw, iteration, part, str(number))


def _cpu(raw: RawFile, iteration: _Iteration, text: str, where: str) -> None:
    """Add the shares of one CPU or of all."""
    name, _colon, rest = text.partition(":")
    percent = _percent(rest)
    digits = re.search(r"\d+", name)
    if _NEEDED - percent.keys():
        if digits is None:
            problem = f"{text.strip()!r} is not a line of CPU shares of top"
            raise CaptureError(raw.path, problem, where=where)
        iteration.cut.append(digits[0])
        return
    try:
        shares = cpu_shares.shares(
            {_COLUMNS[key]: value for key, value in percent.items()}, slack=_slack(rest)
        )
    except ValueError as error:
        raise CaptureError(raw.path, str(error), where=where) from error
    if shares:
        iteration.cpus[digits[0] if digits else "all"] = shares


def _percent(text: str) -> dict[str, float]:
    """Return the shares of a line by their English names."""
    found = {
        _NAMES.get(match[2], match[2]): float(match[1].replace(",", "."))
        for match in _SHARE.finditer(text)
    }
    if found.keys() >= _NEEDED:
        return found
    told = _ANY_SHARE.findall(text)
    if len(told) not in {7, 8} or len({word for _value, word in told}) < len(told):
        return found
    values = [float(value.replace(",", ".")) for value, _word in told]
    return dict(zip(_ORDER, values, strict=False))


def _slack(text: str) -> float:
    """Return by how much the rounded shares may miss 100 %."""
    return 0.6 if re.search(r"\d[.,]\d", text) else 8.0


def _mean(iteration: _Iteration) -> None:
    """Add the machine as the mean of its CPUs, where only these are told."""
    cpus = list(iteration.cpus.values())
    if cpus and "all" not in iteration.cpus and not iteration.cut:
        iteration.cpus["all"] = {
            name: round(sum(one[name] for one in cpus) / len(cpus), 9)
            for name in cpus[0]
            if all(name in one for one in cpus)
        }


def _records(iterations: Sequence[_Iteration]) -> list[Record]:
    """Return the iterations after the first with their place in the run."""
    times = [one.time for one in iterations if one.time is not None]
    if len(times) < 2 or len(times) < len(iterations):
        return []
    ends = cpu_shares.ends(times[1:], times[0])
    return [
        Record(start_s=start, end_s=end, cpus=one.cpus)
        for one, start, end in zip(iterations[1:], [0.0, *ends], ends, strict=False)
    ]


def _whole(
    iterations: Sequence[_Iteration],
    labels: dict[str, str],
    resolution: float,
    reading: Reading,
) -> dict[str, dict[str, float]]:
    """Add the means over iterations, which all weigh the same; return them."""
    records = [Record(start_s=None, end_s=None, cpus=one.cpus) for one in iterations]
    over = cpu_shares.means(records)
    cut = any(one.cut for one in iterations)
    reading.measurements.extend(
        one
        for one in cpu_shares.whole_run(over, resolution, labels)
        if not (cut and one.metric == "cpu_busy_max")
    )
    return over
