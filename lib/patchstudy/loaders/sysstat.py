"""Tables as the programs of sysstat print them, in any locale, and what they mean.

Columns are what ``sar`` calls them: ``%usr``, ``rxpck/s``. The time in front of a row
is the end of its interval, the time in front of a head its start, both in local time.
With 12 hours the time is two words (``02:17:10 PM``), ``Moyenne :`` is two words as
well, and Japanese writes ``14時16分41秒``. sysstat sets no thousands marks, so a comma
before at most two digits is a decimal comma.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import cpu_shares
from patchstudy.loaders.paste import plain
from patchstudy.loaders.reading import Reading
from patchstudy.loaders.text import line_end
from patchstudy.records import RawFile

BANNER: Final = re.compile(
    r"^Linux (?P<release>\S+) \((?P<nodename>[^)]*)\)[ \t]+(?P<date>\S.*?)[ \t]+"
    r"_(?P<machine>\w+)_[ \t]+\((?P<cpus>\d{1,5}) CPU\)"
)
_TIME: Final = re.compile(
    r"^(\d{1,2})\D ?(\d{1,2})\D ?(\d{1,2})(?:[^\s\d])?(?: ?([AaPp])\.? ?[Mm]\.?)?[ \t]+"
)
_AVERAGE: Final = re.compile(r"^[^\s\d:][^\d:]*:[ \t]+")
_NUMBER: Final = re.compile(r"-?\d{1,15}(?:[.,]\d{1,2})?")
_HUMAN: Final = re.compile(r"\d[.,]\d[kMGTP]$")
#: Columns that name the row.
KEYS: Final = frozenset({
    "CPU", "NODE", "IFACE", "INTR", "DEV", "TTY", "BUS", "FAN", "TEMP", "IN",
    "FCHOST", "FILESYSTEM", "MOUNTPOINT", "DEVICE", "BAT",
})  # fmt: skip
_LABELS: Final = {"IFACE": "interface", "INTR": "interrupt", "DEV": "device"}
#: Heads that mpstat prints and sar does not.
MPSTAT: Final = re.compile(
    r"(?:CPU|NODE)[ ]+%use?r[ ]+%nice[ ]+%sys[ ]+%iowait[ ]+%irq\b"
    r"|CPU[ ]+(?:intr/s$|HI/s|\d+/s)"
)
_RESOLUTION: Final = 1e-4
#: Columns that are shares of a CPU's time, with the name they have in ``cpu_shares``.
_PERCENT: Final = {
    f"%{name}": name
    for name in (
        "usr", "user", "nice", "sys", "system", "iowait", "irq", "soft", "steal",
        "guest", "gnice", "idle",
    )
}  # fmt: skip

Rows = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The rows of one interval of a table, by what names them."""

    start_s: float
    end_s: float
    rows: Rows


@dataclass(slots=True, kw_only=True)
class Sheet:
    """All intervals of one table.

    Attributes
    ----------
    key
        Column that names the rows; empty where there is one row only.
    columns
        The other columns.
    average
        The rows that the tool itself worked out over all intervals.
    several_keys
        Whether one of the columns names the rows as well.
    """

    key: str
    columns: tuple[str, ...]
    samples: list[Sample] = field(default_factory=list)
    average: Rows = field(default_factory=dict)
    several_keys: bool = field(init=False)

    def __post_init__(self) -> None:
        self.several_keys = not KEYS.isdisjoint(self.columns)

    @property
    def seconds(self) -> float:
        """Length of all intervals."""
        return sum(one.end_s - one.start_s for one in self.samples)

    @property
    def names(self) -> list[str]:
        """Names of all rows."""
        return list(dict.fromkeys(name for one in self.samples for name in one.rows))

    @property
    def whole(self) -> bool:
        """Whether the tool's averages tell every row."""
        return bool(self.average) and set(self.names) <= self.average.keys()

    def over(self) -> Rows:
        """Return the tool's averages, or the means weighted by time."""
        if self.whole:
            return self.average
        return {name: self._mean(name) for name in self.names}

    def _mean(self, name: str) -> dict[str, float]:
        told = [one for one in self.samples if name in one.rows]
        weights = [one.end_s - one.start_s for one in told]
        total = sum(weights) or 1.0
        return {
            column: sum(
                one.rows[name][column] * weight
                for one, weight in zip(told, weights, strict=True)
            )
            / total
            for column in self.columns
            if all(column in one.rows[name] for one in told)
        }


@dataclass(slots=True, kw_only=True)
class Report:
    """What one call printed.

    Attributes
    ----------
    header
        ``release``, ``nodename``, ``date``, ``machine``, ``cpus`` of the first line.
    since_boot
        Whether it is one report without an interval: means since boot.
    restarted
        Whether the machine restarted within the file.
    """

    raw: RawFile
    header: Mapping[str, str]
    sheets: list[Sheet] = field(default_factory=list)
    since_boot: bool = False
    restarted: bool = False

    def sheet(self, key: str, column: str) -> Sheet | None:
        """Return the table with this key that has the column."""
        for one in self.sheets:
            if one.key == key and column in one.columns:
                return one
        return None


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A table while it is read: times of day and rows."""

    sheet: Sheet
    start: int | None
    times: list[int] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)
    fresh: bool = True


def report(raw: RawFile) -> Report:
    """Read the text of mpstat or sar.

    Raises
    ------
    CaptureError
        If a number cannot be read, or the file holds two calls.
    """
    lines = [(number, line) for number, line in plain(raw.text) if line]
    banners = {n: match for n, line in lines if (match := BANNER.match(line))}
    if len(banners) != 1:
        two = "holds the output of two calls; split the file"
        none = "the first line of sysstat is missing; was it cut?"
        raise CaptureError(raw.path, two if banners else none)
    told = Report(raw=raw, header=next(iter(banners.values())).groupdict())
    drafts: dict[tuple[str, ...], _Draft] = {}
    current: _Draft | None = None
    for number, line in lines:
        if number in banners:
            continue
        if "RESTART" in line:
            told.restarted = True
            continue
        current = _line(told, drafts, current, (number, line))
    _finish(told, list(drafts.values()))
    return told


def number(raw: RawFile, text: str, where: str) -> float:
    """Return a number with a decimal point or comma and at most two decimals."""
    found = _parsed(text)
    if found is None:
        problem = f"{text!r} is not a number"
        if _HUMAN.search(text):
            problem += "; call the tool without --human"
        raise CaptureError(raw.path, problem, where=where)
    return found


def _parsed(text: str) -> float | None:
    try:
        return _float(text)
    except ValueError:
        return None


@lru_cache(maxsize=4096)  # most numbers of a report are printed many times
def _float(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    return float(text.replace(",", "."))


@lru_cache(maxsize=64)  # all rows of an interval have the same time
def _seconds(hour: str, minute: str, second: str, half: str | None) -> int:
    """Return the seconds since midnight of a time with 24 or 12 hours."""
    hours = int(hour)
    if half:
        hours = hours % 12 + (12 if half in "pP" else 0)
    return hours * 3600 + int(minute) * 60 + int(second)


def split(line: str) -> tuple[int | None, list[str]] | None:
    """Return the time of a row and its words; no time for an average.

    None for a line that is no row of a table.
    """
    if match := _TIME.match(line):
        return _seconds(*match.groups()), line[match.end() :].split()
    if match := _AVERAGE.match(line):
        return None, line[match.end() :].split()
    return None


def label_end(line: str) -> int:
    """Return where the words of a row start, behind its time or ``Average:``."""
    match = _TIME.match(line) or _AVERAGE.match(line)
    return match.end() if match else 0


def is_head(words: Sequence[str]) -> bool:
    """Say whether the words are the names of columns."""
    return bool(words) and all(_parsed(word) is None for word in words)


def _line(
    told: Report,
    drafts: dict[tuple[str, ...], _Draft],
    current: _Draft | None,
    line: tuple[int, str],
) -> _Draft | None:
    """Take in one line and return the table that it belongs to."""
    row = split(line[1])
    if row is None:
        problem = f"{line[1]!r} is no row of a table of sysstat"
        raise CaptureError(told.raw.path, problem, where=str(line[0]))
    time, words = row
    if (
        words
        and _parsed(words[-1]) is None
        and (tuple(words) in drafts or is_head(words))
    ):
        return _head(drafts, words, time)
    if current is None:
        problem = "a row without the names of its columns; was the start cut off?"
        raise CaptureError(told.raw.path, problem, where=str(line[0]))
    name, values = _row(told.raw, current.sheet, words, line[0])
    if time is None:
        current.sheet.average[name] = values
        return current
    if current.fresh or current.times[-1] != time or name in current.rows[-1]:
        current.times.append(time)
        current.rows.append({})
        current.fresh = False
    current.rows[-1][name] = values
    return current


def _head(
    drafts: dict[tuple[str, ...], _Draft], words: list[str], time: int | None
) -> _Draft:
    """Return the table of these columns; a new one starts at the head's time."""
    columns = tuple(words)
    if columns not in drafts:
        key = next((word for word in words if word in KEYS), "")
        rest = tuple(word for word in words if word != key)
        drafts[columns] = _Draft(sheet=Sheet(key=key, columns=rest), start=time)
    drafts[columns].fresh = True
    return drafts[columns]


def _row(
    raw: RawFile, sheet: Sheet, words: list[str], line: int
) -> tuple[str, dict[str, float]]:
    """Return what names a row, and its numbers."""
    at = 1 if sheet.key else 0
    count = at + len(sheet.columns)
    if len(words) != count:
        problem = f"{len(words)} values under {count} columns; was it cut short?"
        raise CaptureError(raw.path, problem, where=str(line))
    if sheet.key in {"FILESYSTEM", "MOUNTPOINT"}:
        words = [words[-1], *words[:-1]]
    try:
        values = dict(zip(sheet.columns, map(_float, words[at:]), strict=True))
    except ValueError:
        values = {}
    if sheet.several_keys or not values:
        values = {
            column: number(raw, text, str(line))
            for column, text in zip(sheet.columns, words[at:], strict=True)
            if column not in KEYS
        }
    name = words[0] if at else ""
    return ("all" if sheet.key == "CPU" and name == "-1" else name), values


def _finish(told: Report, drafts: list[_Draft]) -> None:
    """Give every interval its place; tell a report without an interval."""
    told.since_boot = bool(drafts) and all(
        one.times == [one.start] and not one.sheet.average for one in drafts
    )
    for draft in drafts:
        at = cpu_shares.ends(draft.times, draft.start) if draft.times else []
        draft.sheet.samples = [
            Sample(start_s=start, end_s=end, rows=rows)
            for start, end, rows in zip([0.0, *at], at, draft.rows, strict=False)
        ]
        told.sheets.append(draft.sheet)


# ---- what the tables mean ------------------------------------------------------------


def cpu_records(raw: RawFile, sheet: Sheet) -> list[cpu_shares.Record]:
    """Return the shares of a table of CPUs, interval by interval."""
    return [
        cpu_shares.Record(
            start_s=one.start_s, end_s=one.end_s, cpus=cpu_rows(raw, one.rows)
        )
        for one in sheet.samples
    ]


def cpu_rows(raw: RawFile, rows: Rows) -> dict[str, dict[str, float]]:
    """Return the shares of the CPUs that were online."""
    cpus: dict[str, dict[str, float]] = {}
    for cpu, values in rows.items():
        percent = {
            _PERCENT[name]: value for name, value in values.items() if name in _PERCENT
        }
        try:
            found = cpu_shares.shares(percent)
        except ValueError as error:
            raise CaptureError(raw.path, f"CPU {cpu}: {error}") from error
        if found:
            cpus[cpu] = found
    return cpus


def add_cpus(told: Report, reading: Reading) -> dict[str, object]:
    """Add the shares of the CPUs, if there is a table of them; return the facts."""
    facts: dict[str, object] = {}
    present = int(told.header["cpus"]) if told.header.get("cpus") else None
    if present is not None:
        facts["number_of_cpus"] = present
    sheet = told.sheet("CPU", "%idle")
    if sheet is None:
        return facts
    records = cpu_records(told.raw, sheet)
    own = cpu_rows(told.raw, sheet.average) if sheet.whole else {}
    over = own or cpu_shares.means(records)
    labels = {"span": "since boot"} if told.since_boot else {}
    if not told.since_boot:
        reading.measurements.extend(cpu_shares.intervals(records, _RESOLUTION))
    reading.measurements.extend(cpu_shares.whole_run(over, _RESOLUTION, labels))
    reading.caveats.extend(cpu_shares.caveats(over, present))
    busiest = cpu_shares.busiest(over)
    return facts if busiest is None else {**facts, "busiest_cpu": busiest}


def add_interfaces(told: Report, reading: Reading) -> None:
    """Add packet rates, errors and drops of the interfaces."""
    packets, errors = told.sheet("IFACE", "rxpck/s"), told.sheet("IFACE", "rxerr/s")
    rates: dict[tuple[str, str], float] = {}
    for name, direction, values in _both_ways(packets.over() if packets else {}):
        rate = values.get(f"{direction}pck/s")
        if rate is not None:
            rates[name, direction] = rate
            labels = {"interface": name, "direction": direction}
            reading.whole("packet_rate", rate, labels, resolution=0.01)
    for sample in packets.samples if packets else ():
        _packet_intervals(sample, reading)
    if errors:
        _errors(errors, rates, reading)


def _both_ways(rows: Rows) -> Iterator[tuple[str, str, dict[str, float]]]:
    for name, values in rows.items():
        for direction in ("rx", "tx"):
            yield name, direction, values


def _errors(
    sheet: Sheet, rates: Mapping[tuple[str, str], float], reading: Reading
) -> None:
    """Add errors and drops with the packets of the direction as their exposure."""
    seconds = sheet.seconds
    for name, direction, values in _both_ways(sheet.over()):
        moved = rates.get((name, direction))
        for metric, column in (("errors", "err/s"), ("drops", "drop/s")):
            rate = values.get(f"{direction}{column}")
            reading.whole(
                metric,
                None if rate is None else rate * seconds,
                {"interface": name, "direction": direction},
                exposure=None if moved is None else moved * seconds,
            )


def _packet_intervals(sample: Sample, reading: Reading) -> None:
    for name, direction, values in _both_ways(sample.rows):
        rate = values.get(f"{direction}pck/s")
        if rate is not None:
            reading.interval(
                "packet_rate",
                rate,
                (sample.start_s, sample.end_s),
                {"interface": name, "direction": direction},
                resolution=0.01,
            )


def add_counts(told: Report, reading: Reading) -> None:
    """Add context switches, interrupts and softirqs: rates times the seconds."""
    switches, sums = told.sheet("", "cswch/s"), told.sheet("INTR", "intr/s")
    soft = told.sheet("CPU", "NET_RX/s")
    total = told.sheet("CPU", "intr/s")
    found = len(reading.measurements)
    if switches and "" in switches.over():
        rate = switches.over()[""]["cswch/s"]
        reading.whole("context_switches", rate * switches.seconds)
    for sheet, row in ((sums, "sum"), (total, "all")):
        if sheet and row in sheet.over():
            rate = sheet.over()[row]["intr/s"]
            reading.whole("interrupts", rate * sheet.seconds)
    if soft:
        _softirqs(soft, reading)
    if len(reading.measurements) > found:
        reading.note(
            "count-from-rate",
            "counts are printed rates times the time, which is known to a second",
        )


def _softirqs(sheet: Sheet, reading: Reading) -> None:
    """Add the softirqs of each kind over all CPUs, and all of them."""
    rows = [row for name, row in sheet.over().items() if name != "all"]
    every = 0.0
    for column in sheet.columns:
        count = sum(row[column] for row in rows) * sheet.seconds
        every += count
        label = {"softirq": column.removesuffix("/s")}
        reading.whole("softirqs", count, label)
    reading.whole("softirqs", every)


def add_events(told: Report, reading: Reading, known: Sequence[str]) -> None:
    """Add every other column as ``event:<column>``, a mean as printed."""
    for sheet in told.sheets:
        for name, values in sheet.over().items():
            key = _LABELS.get(sheet.key, sheet.key.lower())
            labels = {key: name} if key else {}
            for column, value in values.items():
                if column not in known and column not in _PERCENT:
                    reading.whole(f"event:{column}", value, labels)


def restarted(told: Report, reading: Reading) -> None:
    """Doubt the values of a file in which the machine restarted."""
    if told.restarted:
        reading.doubt(
            "restarted",
            "the machine restarted within the file; the values are of several boots",
            "Keep one boot in a file.",
        )


def doubts(told: Report, reading: Reading) -> None:
    """Add what is absent or doubtful in the text of a file as a whole."""
    restarted(told, reading)
    reading.caveats.extend(line_end(told.raw))
    if told.since_boot:
        reading.doubt(
            "since-boot",
            "one report without an interval: means since boot, not of a run",
            "Call the tool with an interval, as in mpstat -P ALL 1.",
        )
    elif not all(sheet.whole for sheet in told.sheets):
        reading.note(
            "cut-short",
            "the averages at the end are missing: killed, or cut short; means are over"
            " the intervals read",
        )


def host_facts(header: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what the first line says of the machine."""
    for key in ("nodename", "release", "machine"):
        if header.get(key) and header[key] != "(none)":
            yield key, header[key]
