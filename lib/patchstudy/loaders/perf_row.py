"""One row of ``perf stat``, whatever form it was printed in."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

#: What perf prints where it has no number.
ABSENT: Final = {"<not supported>", "<not counted>"}

#: The first line of a report in a file.
STARTED: Final = re.compile(r"# started on (\w{3} \w{3} .+\d{4})\s*")

_CLOCKS: Final = {"cpu-clock", "task-clock"}
_AGGREGATES: Final = (
    ("cpu", re.compile(r"CPU(\d+)")),
    ("core", re.compile(r"(S\d+(?:-D\d+)?(?:-CLS\d+)?-C\d+)")),
    ("cluster", re.compile(r"(S\d+-D\d+-CLS\d+)")),
    ("cache", re.compile(r"(S\d+-D\d+-L\d+-ID\d+)")),
    ("die", re.compile(r"(S\d+-D\d+)")),
    ("socket", re.compile(r"(S\d+)")),
    ("node", re.compile(r"(N\d+)")),
)


@dataclass(slots=True, kw_only=True)
class Row:
    """A count with what stands beside it.

    Attributes
    ----------
    line
        Number of the line in the file.
    event, unit
        As printed, but for a clock in nanoseconds, which is brought to ``msec``.
    value
        None where perf has no number; then ``absent`` says what it printed.
    labels
        The CPU, socket, thread and so on to which the count belongs.
    time_s
        End of the interval, in seconds from the start; None without ``-I``.
    running
        Percent of the time in which the event was counted.
    spread
        Percent of the mean, over the runs of ``-r``.
    report
        Which report of the file, from 1.
    """

    line: int
    event: str
    unit: str
    value: float | None
    absent: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    time_s: float | None = None
    running: float | None = None
    spread: float | None = None
    report: int = 1

    def __post_init__(self) -> None:
        """Bring a clock without a unit to msec.

        perf 6.17 prints whole nanoseconds, perf 4 milliseconds with six decimals.
        """
        if self.unit == "" and self.value is not None and is_clock(self.event):
            whole = self.value.is_integer()
            self.value, self.unit = self.value / (1e6 if whole else 1), "msec"


@dataclass(slots=True)
class Output:
    """All rows of a file, and what the file says beside them.

    ``skipped`` are lines that look like rows and are none; ``cut`` says that the end of
    a report is missing.
    """

    rows: list[Row] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)
    skipped: list[int] = field(default_factory=list)
    cut: bool = False


def is_clock(event: str) -> bool:
    """Say whether perf counts this event in time, with or without modifiers."""
    return event.partition(":")[0] in _CLOCKS


def aggregate(name: str) -> dict[str, str]:
    """Return the label of the part of the machine, or the thread, that was counted."""
    for label, pattern in _AGGREGATES:
        if match := pattern.fullmatch(name):
            return {label: match[1]}
    return {"thread": name} if name else {}
