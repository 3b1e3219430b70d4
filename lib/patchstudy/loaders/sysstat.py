"""Tables as the programs of sysstat print them, in any locale, and what they mean.

Columns are what ``sar`` calls them: ``%usr``, ``rxpck/s``. The time in front of a row
is the end of its interval, the time in front of a head its start, both in local time.
With 12 hours the time is two words (``02:17:10 PM``), ``Moyenne :`` is two words as
well, Japanese writes ``14時16分41秒``, Arabic puts the zone in front, India behind.
sysstat sets no thousands marks, so a comma before at most two digits is a decimal
comma; ``--human`` writes ``2.1%``. What names a
row stands first or, with ``--pretty``, last. A restart of the machine begins the clock
and the averages anew: then the averages printed are of one boot and not used. A table
that no metric comes from and that cannot be read is left out with a note.
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import cpu_shares
from patchstudy.loaders.paste import plain
from patchstudy.loaders.reading import Reading
from patchstudy.loaders.text import line_end
from patchstudy.records import Caveat, RawFile, Severity

BANNER: Final = re.compile(
    r"^Linux (?P<release>\S+) \((?P<nodename>[^)]*)\)[ \t]+(?P<date>\S.*?)"
    r"(?<![ \t])[ \t]++_(?P<machine>\w+)_[ \t]+\((?P<cpus>\d{1,5}) CPU\)"
)
#: The half of a day as glibc writes it: English, Spanish, Arabic, Chinese, Korean,
#: Japanese, Greek, Hindi, Bengali, Tamil.
_FORENOON: Final = r"[Aa]\.? ?[Mm]\.?|ص|上午|오전|午前|πμ|पूर्वाह्न|পূর্বাহ্ণ|காலை"
_AFTERNOON: Final = r"[Pp]\.? ?[Mm]\.?|م|下午|오후|午後|μμ|अपराह्न|অপরাহ্ণ|மாலை"
#: A time zone; a column or a word of sysstat is none.
_ZONE: Final = (
    r"(?!(?:CPU|NODE|IFACE|INTR|DEV|TTY|BUS|FAN|TEMP|IN|BAT|UID|USER|PID|TGID|LINUX|COM)\b)"
    r"[A-Z]{2,5}|[+-]\d\d(?:\d\d)?"
)
#: A time in front of words, as strftime's ``%X`` writes it in any locale.
_TIME: Final = re.compile(
    rf"^ ?(?:(?:{_ZONE}) )?(?:(?:{_FORENOON}|(?P<early>{_AFTERNOON})) ?)?"
    r"(?P<hour>\d{1,2})\D ?(?P<minute>\d{1,2})\D ?(?P<second>\d{1,2})(?:[^\s\d])?"
    rf"(?: ?(?:{_FORENOON}|(?P<late>{_AFTERNOON})))?(?: (?:{_ZONE})(?=[ \t]))?[ \t]+"
)
_HALF: Final = re.compile(f"{_FORENOON}|{_AFTERNOON}")
_AVERAGE: Final = re.compile(r"^[^\s\d:：][^\d:：]*[:：][ \t]+")
#: Rows of ``sar -x``, which are no averages.
_EXTREME: Final = re.compile(
    r"^(?:m[ií]n|m[aá][xk]|мин|мін|мак|最小|最大|최소|최대)[^\s\d:：]*[\s\u202f]?[:：]",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"-?\d{1,15}(?:[.,]\d{1,2})?%?")
_HUMAN: Final = re.compile(r"-?\d{1,15}[.,]\d[BkMGTP]")
#: Columns that name the row.
KEYS: Final = frozenset({
    "CPU", "NODE", "IFACE", "INTR", "DEV", "TTY", "BUS", "FAN", "TEMP", "IN",
    "FCHOST", "FILESYSTEM", "MOUNTPOINT", "DEVICE", "BAT",
})  # fmt: skip
#: Columns that name a row besides its key: where the CPU sits.
_PLACE: Final = ("CORE", "SOCK", "NODE")
#: Tables that metrics come from, by their key and a column; one that cannot be read is
#: an error.
_CORE: Final = {
    "CPU": frozenset({"%idle", "intr/s", "NET_RX/s"}),
    "NODE": frozenset({"%idle"}),
    "IFACE": frozenset({"rxpck/s", "rxerr/s"}),
    "INTR": frozenset({"intr/s"}),
    "": frozenset({"cswch/s"}),
}
_LABELS: Final = {"IFACE": "interface", "INTR": "interrupt", "DEV": "device"}
#: Heads that mpstat prints and sar does not.
MPSTAT: Final = re.compile(
    r"(?:CPU|NODE)(?: +CORE +SOCK +NODE)? +%use?r +%nice +%sys +%iowait +%irq\b"
    r"|CPU[ ]+(?:intr/s$|HI/s|\d+/s)"
)
_SLACK: Final = 1.5
#: Columns that are shares of a CPU's time, with the name they have in ``cpu_shares``.
_PERCENT: Final = {
    f"%{name}": name
    for name in (
        "usr", "user", "nice", "sys", "system", "iowait", "irq", "soft", "steal",
        "guest", "gnice", "idle",
    )
}  # fmt: skip

#: The tool printed no averages at the end.
CUT_SHORT: Final = Caveat(
    code="cut-short",
    severity=Severity.NOTE,
    text="the averages at the end are missing: killed, or cut short; means are over the"
    " intervals read",
)
#: A report without an interval says nothing of a run.
SINCE_BOOT: Final = Caveat(
    code="since-boot",
    severity=Severity.DOUBT,
    text="one report without an interval: means since boot, not of a run",
    todo="Call the tool with an interval, as in mpstat -P ALL 1.",
)

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
    human
        Whether a number was left out that ``--human`` had shortened.
    """

    key: str
    columns: tuple[str, ...]
    samples: list[Sample] = field(default_factory=list)
    average: Rows = field(default_factory=dict)
    several_keys: bool = field(init=False)
    human: bool = False

    def __post_init__(self) -> None:
        self.several_keys = not KEYS.isdisjoint(self.columns) or bool(
            set(_PLACE).intersection(self.columns)
        )

    @property
    def seconds(self) -> float:
        """Length of all intervals."""
        return math.fsum(one.end_s - one.start_s for one in self.samples)

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
        total = math.fsum(weights) or 1.0
        return {
            column: math.fsum(
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
    unread
        First columns of the tables that could not be read and give no metric.
    core
        Whether only tables that give a metric are read.
    passed_over
        Whether there were rows of tables that are not read.
    """

    raw: RawFile
    header: Mapping[str, str]
    core: bool = False
    sheets: list[Sheet] = field(default_factory=list)
    since_boot: bool = False
    restarted: bool = False
    unread: dict[str, None] = field(default_factory=dict)
    passed_over: bool = False

    def sheet(self, key: str, column: str) -> Sheet | None:
        """Return the table with this key that has the column."""
        for one in self.sheets:
            if one.key == key and column in one.columns:
                return one
        return None


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A table while it is read: times of day and rows.

    Attributes
    ----------
    order
        All columns, as printed.
    boots
        For every boot where its rows start, and the time of its first head.
    moment, latest
        What stands in front of the last row, and the rows of that time; empty where the
        next row is to be looked at closely.
    """

    sheet: Sheet
    order: tuple[str, ...]
    boots: list[tuple[int, int | None]]
    times: list[int] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)
    fresh: bool = True
    readable: bool = True
    moment: str = ""
    latest: Rows = field(default_factory=dict)

    @property
    def simple(self) -> bool:
        """Whether a row is its name and a number a column."""
        key = self.sheet.key
        named = key not in {"", "INTR"} and self.order[0] == key
        return named and self.readable and not self.sheet.several_keys


def report(raw: RawFile, *, core: bool = False) -> Report:
    """Read the text of mpstat or sar.

    Parameters
    ----------
    core
        Whether only the tables that give a metric are read (``is_core``); of the
        others not even the numbers are.

    Raises
    ------
    CaptureError
        If a number cannot be read, or the file holds two calls.
    """
    lines, banners = [], {}
    for one in plain(raw.text):
        if one[1]:
            lines.append(one)
            if one[1].startswith("Linux ") and (match := BANNER.match(one[1])):
                banners[one[0]] = match
    if len(banners) != 1:
        two = "holds the output of two calls; split the file"
        none = "the first line of sysstat is missing; was it cut?"
        raise CaptureError(raw.path, two if banners else none)
    header = next(iter(banners.values())).groupdict()
    told = Report(raw=raw, header=header, core=core)
    drafts: dict[tuple[str, ...], _Draft] = {}
    current: _Draft | None = None
    for number, line in lines:
        if current and current.moment and _quick(current, line):
            continue
        if number not in banners:
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


@lru_cache(maxsize=4096)  # most words of a report are printed many times
def _parsed(text: str) -> float | None:
    """Return a number; None for a word that is none."""
    if not _NUMBER.fullmatch(text):
        return None
    return float(text.rstrip("%").replace(",", "."))


def _seconds(found: re.Match[str]) -> int:
    """Return the seconds since midnight of a time with 24 or 12 hours."""
    hours = int(found["hour"])
    if found["early"] or found["late"]:
        hours = hours % 12 + 12
    elif hours == 12 and _HALF.search(found[0]):
        hours = 0
    return hours * 3600 + int(found["minute"]) * 60 + int(found["second"])


@lru_cache(maxsize=64)  # of what stands in front of the words of a row
def time_of(text: str) -> tuple[int | None, int] | None:
    """Return what ``place`` does."""
    return place(text)


def place(line: str) -> tuple[int | None, int] | None:
    """Return the time of a row, none for an average, and where its words start.

    None for a line that is no row of a table.
    """
    if match := _TIME.match(line):
        return _seconds(match), match.end()
    if match := _AVERAGE.match(line):
        return None, match.end()
    return None


def split(line: str) -> tuple[int | None, list[str]] | None:
    """Return the time of a row and its words; see ``place``."""
    found = place(line)
    return None if found is None else (found[0], line[found[1] :].split())


def label_end(line: str) -> int:
    """Return where the words of a row start, behind its time or ``Average:``."""
    found = place(line)
    return 0 if found is None else found[1]


def is_core(key: str, columns: Collection[str]) -> bool:
    """Say whether a metric comes from a table with this key and these columns."""
    return key in _CORE and not _CORE[key].isdisjoint(columns)


def is_head(words: Sequence[str]) -> bool:
    """Say whether the words are the names of columns."""
    return {*map(_parsed, words)} == {None}


def _line(
    told: Report,
    drafts: dict[tuple[str, ...], _Draft],
    current: _Draft | None,
    line: tuple[int, str],
) -> _Draft | None:
    """Take in one line and return the table that it belongs to."""
    found = place(line[1])
    if found is None:
        problem = f"{line[1]!r} is no row of a table of sysstat"
        raise CaptureError(told.raw.path, problem, where=str(line[0]))
    time, start = found
    words = line[1][start:].split()
    if _is_aside(told, drafts, line[1], words[:2]):
        return current
    if (
        words
        and _parsed(words[-1]) is None
        and (tuple(words) in drafts or is_head(words))
    ):
        return _head(drafts, words, time, core=told.core)
    if current is None:
        problem = "a row without the names of its columns; was the start cut off?"
        raise CaptureError(told.raw.path, problem, where=str(line[0]))
    _take(told, current, time, line=(line[0], words))
    if current.simple:
        current.moment = line[1][:start]
        current.latest = current.sheet.average if time is None else current.rows[-1]
    elif not current.readable:
        current.moment = line[1][:start]
    return current


def _is_aside(
    told: Report, drafts: dict[tuple[str, ...], _Draft], line: str, first: list[str]
) -> bool:
    """Say whether a line is of no table: a comment, a restart, an extreme."""
    if first[:1] == ["LINUX"] and first[1:] and first[1].startswith("RESTART"):
        _restart(told, drafts.values())
        return True
    if _EXTREME.match(line):
        told.unread["minimum and maximum"] = None
        return True
    return first[:1] == ["COM"]


def _quick(draft: _Draft, line: str) -> bool:
    """Take in one more row of a time, as most are; return whether it was one."""
    if not line.startswith(draft.moment):
        return False
    if not draft.readable:  # a row ends in a number, a head in a name
        return line.rstrip()[-1:].isdigit()
    words = line[len(draft.moment) :].split()
    if len(words) != len(draft.order) or words[0] in draft.latest or words[0] == "-1":
        return False
    values = _numbers(draft, words)
    if values is None:
        return False
    draft.latest[words[0]] = values
    return True


def _numbers(draft: _Draft, words: list[str]) -> dict[str, float] | None:
    """Return the numbers of a row behind its name; None where one cannot be read."""
    values = dict(zip(draft.sheet.columns, map(_parsed, words[1:]), strict=True))
    return None if None in values.values() else values  # type: ignore[return-value]


def _restart(told: Report, drafts: Collection[_Draft]) -> None:
    """Begin a new boot, unless nothing was measured before it."""
    if any(one.times for one in drafts):
        told.restarted = True
        for one in drafts:
            one.sheet.average = {}
            one.boots.append((len(one.times), None))


def _take(
    told: Report, draft: _Draft, time: int | None, line: tuple[int, list[str]]
) -> None:
    """Add a row to its table."""
    if not draft.readable:
        told.passed_over = True
        return
    try:
        name, values = _plain_row(draft, line[1]) or _row(
            told.raw, draft, line[1], line[0]
        )
    except CaptureError:
        sheet = draft.sheet
        if is_core(sheet.key, sheet.columns):
            raise
        told.unread[draft.order[0]] = None
        draft.readable = False
        return
    if time is None:
        draft.sheet.average[name] = values
        return
    if draft.fresh or draft.times[-1] != time or name in draft.rows[-1]:
        draft.times.append(time)
        draft.rows.append({})
        draft.fresh = False
    draft.rows[-1][name] = values


def _head(
    drafts: dict[tuple[str, ...], _Draft],
    words: list[str],
    time: int | None,
    *,
    core: bool,
) -> _Draft:
    """Return the table of these columns; a new one starts at the head's time."""
    order = tuple(words)
    draft = drafts.get(order) or _draft(drafts, order, time, core=core)
    draft.order, draft.fresh, draft.moment = order, True, ""
    if draft.boots[-1] == (len(draft.times), None):
        draft.boots[-1] = (len(draft.times), time)
    return draft


def _draft(
    drafts: dict[tuple[str, ...], _Draft],
    order: tuple[str, ...],
    time: int | None,
    *,
    core: bool,
) -> _Draft:
    """Return the table of columns that were not there before, as they are now."""
    key = next((word for word in order if word in KEYS), "")
    name = (key, "intr/s") if key == "INTR" else order
    if name not in drafts:
        at = order.index(key) if key else len(order)
        rest = ("intr/s",) if key == "INTR" else (*order[:at], *order[at + 1 :])
        drafts[name] = _Draft(
            sheet=Sheet(key=key, columns=rest),
            order=order,
            boots=[(0, time)],
            readable=not core or is_core(key, rest),
        )
    return drafts[name]


def _plain_row(draft: _Draft, words: list[str]) -> tuple[str, dict[str, float]] | None:
    """Return name and numbers of a row as most are; None where it is another."""
    sheet = draft.sheet
    if not draft.simple or len(words) != len(draft.order):
        return None
    values = _numbers(draft, words)
    if values is None:
        return None
    return ("all" if words[0] == "-1" and sheet.key == "CPU" else words[0]), values


def _row(
    raw: RawFile, draft: _Draft, words: list[str], line: int
) -> tuple[str, dict[str, float]]:
    """Return what names a row, and its numbers."""
    sheet, order = draft.sheet, draft.order
    if order[1:4] == _PLACE and len(words) == len(order) - 3:
        order = (order[0], *order[4:])  # the row of all CPUs has no place
    if len(words) == len(order) - 1 and "%idle" in order and _idle_at(words):
        words = [*words[:-1], "0.00", words[-1]]  # a CPU without ticks lacks a column
    if order[:2] == ("INTR", "all"):  # CPUs come and go, without a new head
        words, order = words[:2], order[:2]
    if len(words) != len(order):
        problem = f"{len(words)} values under {len(order)} columns; was it cut short?"
        raise CaptureError(raw.path, problem, where=str(line))
    row = dict(zip(order, words, strict=True))
    name = row.pop(sheet.key) if sheet.key else ""
    if sheet.key == "INTR":
        rate = row.get("all", row.get("intr/s"))  # only some CPUs were asked for
        row = {} if rate is None else {"intr/s": rate}
    sheet.human |= any(map(_HUMAN.fullmatch, row.values()))
    return ("all" if sheet.key == "CPU" and name == "-1" else name), {
        column: number(raw, text, str(line))
        for column, text in row.items()
        if column not in KEYS and column not in _PLACE and not _HUMAN.fullmatch(text)
    }


def _idle_at(words: Sequence[str]) -> bool:
    """Say whether a row says nothing but that a CPU was idle all the time."""
    return _parsed(words[-1]) == 100 and not any(map(_parsed, words[1:-1]))


def _finish(told: Report, drafts: list[_Draft]) -> None:
    """Give every interval its place; tell a report without an interval."""
    drafts = [one for one in drafts if one.readable]
    told.since_boot = bool(drafts) and all(
        one.times == [one.boots[0][1]] and not one.sheet.average for one in drafts
    )
    for draft in drafts:
        if told.restarted:
            draft.sheet.average = {}
        spans = _spans(draft)
        draft.sheet.samples = [
            Sample(start_s=start, end_s=end, rows=rows)
            for (start, end), rows in zip(spans, draft.rows, strict=True)
        ]
        told.sheets.append(draft.sheet)


def _spans(draft: _Draft) -> list[tuple[float, float]]:
    """Return start and end of every interval; the time between boots is left out."""
    spans: list[tuple[float, float]] = []
    ends = [first for first, _start in draft.boots[1:]] + [len(draft.times)]
    for (first, start), last in zip(draft.boots, ends, strict=True):
        begin = spans[-1][1] if spans else 0.0
        times = draft.times[first:last]
        at = cpu_shares.ends(times, start) if times else []
        spans += [(begin + a, begin + b) for a, b in zip([0.0, *at], at, strict=False)]
    return spans


# ---- what the tables mean ------------------------------------------------------------


def cpu_records(
    raw: RawFile, sheet: Sheet, digit: float = 1e-4
) -> list[cpu_shares.Record]:
    """Return the shares of a table of CPUs, interval by interval."""
    return [
        cpu_shares.Record(
            start_s=one.start_s,
            end_s=one.end_s,
            cpus=cpu_rows(raw, sheet, one.rows, digit),
        )
        for one in sheet.samples
    ]


def cpu_rows(
    raw: RawFile, sheet: Sheet, rows: Rows, digit: float
) -> dict[str, dict[str, float]]:
    """Return the shares of the CPUs that were online."""
    cpus: dict[str, dict[str, float]] = {}
    names = [(name, _PERCENT[name]) for name in sheet.columns if name in _PERCENT]
    slack = max(_SLACK, 50 * digit * len(names))
    for cpu, values in rows.items():
        percent = {name: values[column] for column, name in names if column in values}
        try:
            found = cpu_shares.shares(percent, slack=slack)
        except ValueError as error:
            raise CaptureError(raw.path, f"CPU {cpu}: {error}") from error
        if found:
            cpus[cpu] = found
    return cpus


def resolution(rows: Iterable[Mapping[str, float]]) -> float:
    """Return the last digit of shares of 1: ``--dec=0`` and ``--human`` print fewer."""
    digit = 1e-2
    for one in rows:
        for value in one.values():
            if value % 1:
                if value * 10 % 1:
                    return 1e-4
                digit = 1e-3
    return digit


def add_cpus(told: Report, reading: Reading) -> dict[str, object]:
    """Add the shares of the CPUs, if there is a table of them; return the facts."""
    present = int(told.header["cpus"]) if told.header.get("cpus") else None
    sheet = told.sheet("CPU", "%idle")
    if sheet is None:
        return {} if present is None else {"number_of_cpus": present}
    every = (row for one in sheet.samples for row in one.rows.values())
    digit = resolution(chain(sheet.average.values(), every))
    records = cpu_records(told.raw, sheet, digit)
    own = cpu_rows(told.raw, sheet, sheet.average, digit) if sheet.whole else {}
    if told.since_boot:
        means = own or cpu_shares.means(records)
        return add_since_boot(means, digit, present, reading)
    return add_shares(records, own, digit, present, reading)


def add_since_boot(
    means: Mapping[str, Mapping[str, float]],
    digit: float,
    present: int | None,
    reading: Reading,
) -> dict[str, object]:
    """Add the shares of a report without an interval; return the facts."""
    span = {"span": "since boot"}
    reading.measurements.extend(cpu_shares.whole_run(means, digit, span))
    return cpu_facts(means, present, reading)


def add_shares(
    records: Sequence[cpu_shares.Record],
    own: Mapping[str, Mapping[str, float]],
    digit: float,
    present: int | None,
    reading: Reading,
) -> dict[str, object]:
    """Add shares by interval and over the run; return the facts.

    The tool's ``own`` averages count, where it has some.
    """
    over = own or cpu_shares.means(records)
    reading.measurements.extend(cpu_shares.intervals(records, digit))
    reading.measurements.extend(cpu_shares.whole_run(over, digit))
    return cpu_facts(over, present, reading)


def cpu_facts(
    over: Mapping[str, Mapping[str, float]], present: int | None, reading: Reading
) -> dict[str, object]:
    """Add what is doubtful of the shares over a run; return the facts."""
    reading.caveats.extend(cpu_shares.caveats(over, present))
    facts: dict[str, object] = {}
    if present is not None:
        facts["number_of_cpus"] = present
    if (busiest := cpu_shares.busiest(over)) is not None:
        facts["busiest_cpu"] = busiest
    return facts


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
        rate = sheet.over().get(row, {}).get("intr/s") if sheet else None
        if sheet and rate is not None:
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
    seconds, over = sheet.seconds, sheet.over()
    rows = [row for name, row in over.items() if name != "all"]
    every = 0.0
    for column in sheet.columns:
        count = math.fsum(row[column] for row in rows) * seconds
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


def unread(tables: Collection[str], reading: Reading) -> None:
    """Name the tables that are not read."""
    if tables:
        reading.note("tables-unread", "not read: " + ", ".join(tables))


def doubts(told: Report, reading: Reading) -> None:
    """Add what is absent or doubtful in the text of a file as a whole."""
    restarted(told, reading)
    unread(told.unread, reading)
    reading.caveats.extend(line_end(told.raw))
    if any(sheet.human for sheet in told.sheets):
        reading.note(
            "human",
            "numbers that --human shortened are absent; call the tool without it",
        )
    if told.since_boot:
        reading.caveats.append(SINCE_BOOT)
    elif not told.restarted and not all(sheet.whole for sheet in told.sheets):
        reading.caveats.append(CUT_SHORT)


def host_facts(header: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what the first line says of the machine."""
    return [
        (key, header[key])
        for key in ("nodename", "release", "machine")
        if header.get(key) and header[key] != "(none)"
    ]
