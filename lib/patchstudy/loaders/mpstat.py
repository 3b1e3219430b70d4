"""Read mpstat of sysstat, its JSON (``-o JSON``) and its text: how busy the CPUs were.

The shares of a CPU's time are percentages with two decimals (mpstat.c of sysstat);
``guest`` is not contained in ``usr``, so they add up to 100. What ``cpu_busy``,
``cpu_busy_max`` and ``cpu_softirq`` are stands in ``cpu_shares``. Values of the whole
run are mpstat's own averages where the text has them, else means weighted by time.
``interrupts`` and ``softirqs`` (label ``softirq``) are printed rates times the time.
Text comes in any locale: a decimal comma is read as such.

A record's time is its end, in local time and whole seconds, and the date is written as
the locale likes, so the time in UTC is not known. In the JSON a record is as long as
the time since the one before, the first as long as the second; in the text a head tells
where an interval starts. One report without an interval holds means since boot: its
values carry the label ``span``. sysstat 11 and 12.1 write ``-1`` for the CPU ``all``. A
CPU that is offline has shares of 0 only and is left out.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import cpu_shares, mpstat_plain, sysstat
from patchstudy.loaders.cpu_shares import Record
from patchstudy.loaders.paste import plain_head
from patchstudy.loaders.reading import Reading
from patchstudy.loaders.text import json_value
from patchstudy.records import Capture, Caveat, RawFile, Severity

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "cpu_busy": (
        "1 - (idle + iowait) / 100; JSON: statistics[].cpu-load[], text: the row "
        'of the CPU; the run: "Average", else the mean weighted by time'
    ),
    "cpu_busy_max": "the same, of the CPU that was busiest over the run",
    "cpu_softirq": "soft / 100 of the same rows",
    "interrupts": "column intr/s (sum-interrupts), times the time",
    "softirqs": "the columns of -I SCPU (soft-interrupts), times the time",
}
#: How a file begins that is of mpstat and of nothing else, not of sar or sadf.
OPENS = re.compile(
    r'\{"sysstat": ?\{\s*"hosts": ?\[\s*\{(?:(?!"file-date")[^\[])*'
    r'"statistics": ?\[\s*\{\s*"timestamp": ?"[^"]*",\s*"cpu-load"'
    r"|Linux \S[^\n]*\n\n\d\d[^\n%]* CPU +"
    r"(?:%usr +%nice +%sys +%iowait +%irq|intr/s *\n|HI/s|\d+/s)"
)
_TABLES = re.compile(r'"(?:cpu|node)-load"|"(?:sum|individual|soft)-interrupts"')
_NOTHING = re.compile(r'"statistics"\s*:\s*\[\s*\]')
_LIST = re.compile(r'"statistics"\s*:\s*\[')
_NEEDED = ("usr", "nice", "sys", "iowait", "irq", "soft", "idle")
_LATER = ("steal", "guest", "gnice")  # old versions have none of them
_RESOLUTION: Final = 1e-4
_CLOCK = Caveat(
    code="clock-unknown",
    severity=Severity.NOTE,
    text="mpstat writes local time without its zone; when it started is not known",
)


def sniff(raw: RawFile) -> bool:
    """Say whether it is sysstat's JSON or text with a table of mpstat, not of sar."""
    return _is_json(raw) or _is_text(raw)


def _is_json(raw: RawFile) -> bool:
    head = raw.head
    if not head.lstrip().startswith("{") or '"sysstat"' not in head[:200]:
        return False
    if '"file-date"' in head:
        return False
    return any(pattern.search(head) for pattern in (_TABLES, _NOTHING))


def _is_text(raw: RawFile) -> bool:
    lines = plain_head(raw)
    if not lines or not sysstat.BANNER.match(lines[0]) or len(lines) < 2:
        return False
    row = sysstat.split(lines[1])
    return row is not None and sysstat.MPSTAT.match(" ".join(row[1])) is not None


def load(raw: RawFile) -> Capture:
    """Read the shares of every record and their means over the run."""
    if raw.head.lstrip().startswith("{"):
        return _from_json(raw)
    return _from_text(raw)


def _from_text(raw: RawFile) -> Capture:
    """Read the tables of the text.

    Raises
    ------
    CaptureError
        If no table is read, or a number cannot be.
    """
    if plain := mpstat_plain.read(raw.text):
        return _from_plain(raw, plain)
    told = sysstat.report(raw, core=True)
    reading = Reading(caveats=[_CLOCK])
    facts = dict(sysstat.host_facts(told.header)) | sysstat.add_cpus(told, reading)
    if told.since_boot:
        _since_boot(told, reading)
    else:
        sysstat.add_counts(told, reading)
    sysstat.doubts(told, reading)
    rows = any(sheet.average or sheet.samples for sheet in told.sheets)
    if not rows and not told.passed_over:
        raise CaptureError(raw.path, "holds no row of a table; was it cut short?")
    timed = told.sheets and not told.since_boot
    if not told.sheet("CPU", "%idle"):
        reading.note("cpu-absent", "no table of CPU shares; call mpstat with -u")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="mpstat",
        workload={"duration_s": told.sheets[0].seconds if timed else None},
        measurements=tuple(reading.measurements),
        facts=facts,
        caveats=tuple(reading.caveats),
    )


def _from_plain(raw: RawFile, told: mpstat_plain.Plain) -> Capture:
    reading = Reading(caveats=[_CLOCK])
    present = int(told.header["cpus"])
    if told.since_boot:
        shares = told.records[0].cpus
        facts = sysstat.add_since_boot(shares, _RESOLUTION, present, reading)
        reading.caveats.append(sysstat.SINCE_BOOT)
    else:
        facts = sysstat.add_shares(
            told.records, told.own, _RESOLUTION, present, reading
        )
        if not told.own:
            reading.caveats.append(sysstat.CUT_SHORT)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="mpstat",
        workload={"duration_s": None if told.since_boot else told.records[-1].end_s},
        measurements=tuple(reading.measurements),
        facts=dict(sysstat.host_facts(told.header)) | facts,
        caveats=tuple(reading.caveats),
    )


def _since_boot(told: sysstat.Report, reading: Reading) -> None:
    """Add the rate of interrupts since boot; a count is not known."""
    sheet = told.sheet("CPU", "intr/s")
    rates = sheet.over().get("all", {}) if sheet else {}
    reading.whole("event:intr/s", rates.get("intr/s"), {"span": "since boot"})


def _from_json(raw: RawFile) -> Capture:
    host, cut = _host(raw)
    records = _records(raw, host)
    reading = Reading(caveats=[_CLOCK])
    facts: dict[str, object] = dict(_facts(host))
    if records:
        means = cpu_shares.means(records)
        reading.measurements.extend(cpu_shares.intervals(records, _RESOLUTION))
        reading.measurements.extend(cpu_shares.whole_run(means, _RESOLUTION))
        reading.caveats.extend(_caveats(len(records), cut=cut))
        reading.caveats.extend(cpu_shares.caveats(means, host.get("number-of-cpus")))
        busiest = cpu_shares.busiest(means)
        facts |= {} if busiest is None else {"busiest_cpu": busiest}
    elif cut:
        raise CaptureError(raw.path, "cut short before the first record")
    else:
        reading.doubt(
            "cpu-absent",
            "holds no record of CPU shares",
            "Call mpstat with -u -P ALL -o JSON 1, and let it end.",
        )
    _add_counts(raw, host, reading)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="mpstat",
        measurements=tuple(reading.measurements),
        facts=facts,
        caveats=tuple(reading.caveats),
    )


def _add_counts(raw: RawFile, host: dict[str, Any], reading: Reading) -> None:
    """Add interrupts and softirqs: rates times the time, of ``-I SUM`` and ``SCPU``."""
    found = [one for one in host["statistics"] if isinstance(one, dict)]
    if len(found) < 2:  # how long one record is, is not told
        return
    times = [
        _seconds(raw, one.get("timestamp"), f"statistics[{index}]")
        for index, one in enumerate(found)
    ]
    ends = cpu_shares.ends(times)
    sums: defaultdict[str, float] = defaultdict(float)
    for one, start, end in zip(found, [0.0, *ends], ends, strict=False):
        for name, rate in _interrupt_rates(raw, one):
            sums[name] += rate * (end - start)
    if "" in sums:
        reading.whole("interrupts", sums.pop(""))
    for name, count in sums.items():
        reading.whole("softirqs", count, {"softirq": name})
    if sums:
        reading.whole("softirqs", sum(sums.values()))


def _interrupt_rates(
    raw: RawFile, record: dict[str, Any]
) -> Iterator[tuple[str, float]]:
    """Yield the rate of all interrupts, without a name, and of each softirq by CPU."""
    for row in _rows(record, "sum-interrupts"):
        if str(row.get("cpu")) in {"all", "-1"}:
            yield "", _rate(raw, row.get("intr"))
    for row in _rows(record, "soft-interrupts"):
        for kind in _rows(row, "intr"):
            yield str(kind.get("name")), _rate(raw, kind.get("value"))


def _rows(table: dict[str, Any], name: str) -> list[dict[str, Any]]:
    rows = table.get(name)
    told = rows if isinstance(rows, list) else []
    return [one for one in told if isinstance(one, dict)]


def _rate(raw: RawFile, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise CaptureError(raw.path, f"{value!r} is not a rate of interrupts")
    return float(value)


def _host(raw: RawFile) -> tuple[dict[str, Any], bool]:
    """Return the header with its records, and whether the file is cut."""
    if raw.text.count('"sysstat"') > 1:
        raise CaptureError(raw.path, "holds the output of two calls; split the file")
    value: Any
    try:
        value, cut = json_value(raw), False
    except CaptureError:
        value, cut = _complete_part(raw.text), True
        if value is None:
            raise
    try:
        host = value["sysstat"]["hosts"][0]
        if isinstance(host["statistics"], list):
            return host, cut
    except (KeyError, IndexError, TypeError) as error:
        missing = f"not laid out as mpstat does ({type(error).__name__}: {error})"
        raise CaptureError(raw.path, missing) from error
    raise CaptureError(raw.path, "not laid out as mpstat does: no list of statistics")


def _complete_part(text: str) -> object:
    """Return the header and the records before the cut; None where it has neither."""
    match = _LIST.search(text)
    if match is None:
        return None
    records: list[object] = []
    rest = text[match.end() :].lstrip(" \t\r\n,")
    while rest.startswith("{"):
        try:
            record, end = json.JSONDecoder().raw_decode(rest)
        except (ValueError, RecursionError):
            break
        records.append(record)
        rest = rest[end:].lstrip(" \t\r\n,")
    try:
        value = json.loads(text[: match.end()] + "]}]}}")
        value["sysstat"]["hosts"][0]["statistics"] = records
    except (ValueError, LookupError, TypeError):
        return None
    return value


def _records(raw: RawFile, host: dict[str, Any]) -> list[Record]:
    """Return the records that hold a CPU table, with their place in the run."""
    tables = [
        (f"statistics[{index}]", one)
        for index, one in enumerate(host["statistics"])
        if isinstance(one, dict) and isinstance(one.get("cpu-load"), list)
    ]
    times = [_seconds(raw, one.get("timestamp"), where) for where, one in tables]
    ends = cpu_shares.ends(times)
    return [
        Record(start_s=start, end_s=end, cpus=_cpus(raw, one["cpu-load"], where))
        for (where, one), start, end in zip(tables, [0.0, *ends], ends, strict=False)
    ]


def _seconds(raw: RawFile, timestamp: object, where: str) -> int:
    """Return the seconds since midnight of a time with 24 or 12 hours."""
    found = sysstat.time_of(f"{timestamp}  ")
    if found is None or found[0] is None:
        problem = f"{timestamp!r} is not a time of day"
        raise CaptureError(raw.path, problem, where=f"{where}.timestamp")
    return found[0]


def _cpus(raw: RawFile, rows: list[object], where: str) -> dict[str, dict[str, float]]:
    """Return the shares of every CPU that was online."""
    cpus: dict[str, dict[str, float]] = {}
    for index, row in enumerate(rows):
        name, shares = _shares(raw, row, f"{where}.cpu-load[{index}]")
        if any(shares.values()):
            away = shares["idle"] + shares["iowait"]
            cpus[name] = {**shares, "busy": round(max(0.0, 1 - away), 6)}
    return cpus


def _shares(raw: RawFile, row: object, where: str) -> tuple[str, dict[str, float]]:
    """Return the CPU of a row and its shares of 1."""
    if not isinstance(row, dict) or "cpu" not in row:
        raise CaptureError(raw.path, "not a row of a CPU", where=where)
    shares: dict[str, float] = {}
    for key in (*_NEEDED, *_LATER):
        value = row.get(key, 0.0 if key in _LATER else None)
        if isinstance(value, bool) or not isinstance(value, int | float):
            problem = f"{value!r} is not a share in percent"
            raise CaptureError(raw.path, problem, where=f"{where}.{key}")
        shares[key] = round(value / 100, 6)
    name = str(row["cpu"])
    return "all" if name == "-1" else name, shares


def _facts(host: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Yield what the header says of the machine."""
    for key in ("nodename", "sysname", "release", "machine"):
        if isinstance(host.get(key), str) and host[key] != "(none)":
            yield key, host[key]
    if isinstance(host.get("number-of-cpus"), int):
        yield "number_of_cpus", host["number-of-cpus"]


def _caveats(n_records: int, *, cut: bool) -> Iterator[Caveat]:
    """Yield what is absent or doubtful."""
    if cut:
        text = (
            f"mpstat was killed or the file is cut: {n_records} complete records read"
        )
        yield _note("cut-short", text, "Stop mpstat with SIGINT, which ends the file.")
    if n_records == 1:
        yield Caveat(
            code="length-unknown",
            severity=Severity.DOUBT,
            text="one record only, taken as 1 s; where mpstat was called without an"
            " interval it is since boot, which the JSON does not tell",
            todo="Call mpstat with an interval, as in -o JSON 1 10.",
        )


def _note(code: str, text: str, todo: str) -> Caveat:
    return Caveat(code=code, severity=Severity.NOTE, text=text, todo=todo)
