"""What tc tells of queueing disciplines and classes, as text or as JSON."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import counter, json_value, lines, sequence
from patchstudy.records import Measurement, RawFile

#: Counters and states of one queue, by the keys of ``tc -j``.
COUNTERS: Final = ("bytes", "packets", "drops", "overlimits", "requeues")

_SENT = re.compile(
    r"\s*Sent (?P<bytes>\d+) bytes (?P<packets>\d+) pkts? "
    r"\(dropped (?P<drops>\d+), overlimits (?P<overlimits>\d+)"
    r" requeues (?P<requeues>\d+)\)\s*"
)
_BACKLOG = re.compile(r"\bbacklog (\d+)b\b")


@dataclass(slots=True)
class Queue:
    """One qdisc or class: what tells it apart, its set-up and its counters."""

    facts: dict[str, object]
    counters: dict[str, int] = field(default_factory=dict)


def of_text(raw: RawFile, start: re.Pattern[str]) -> list[Queue]:
    """Return the queues of the text; ``start`` matches the first line of each.

    Named groups of ``start`` are its facts, but for ``options``, which are joined.

    Raises
    ------
    CaptureError
        If counters are cut short, or stand twice, or above every queue.
    """
    queues: list[Queue] = []
    for number, line in lines(raw):
        match, sent = start.fullmatch(line.rstrip()), _SENT.fullmatch(line)
        if match:
            queues.append(Queue(facts=_facts(match.groupdict())))
        elif sent and queues and not queues[-1].counters:
            counts = {key: int(value) for key, value in sent.groupdict().items()}
            queues[-1].counters.update(counts)
        elif line.lstrip().startswith("Sent "):
            problem = f"{line.strip()!r} is not the counters of one queue"
            raise CaptureError(raw.path, problem, where=str(number))
        elif queues and (backlog := _BACKLOG.search(line)):
            queues[-1].counters["backlog"] = int(backlog[1])
    return queues


def of_json(raw: RawFile, key: str) -> list[Queue]:
    """Return the queues of the JSON: objects that have the key ``kind`` or ``class``.

    Raises
    ------
    CaptureError
        If it is not JSON, or a counter is none.
    """
    listed = sequence(json_value(raw))
    queues: list[Queue] = []
    for one in listed:
        if isinstance(one, dict) and key in one:
            where = f"{one[key]} {one.get('handle', '')}".strip()
            nested = one.get("stats")
            stats = nested if isinstance(nested, dict) else one
            counts = {
                name: counter(raw, stats[name], f"{where}.{name}")
                for name in (*COUNTERS, "backlog")
                if name in stats
            }
            queues.append(Queue(facts=one, counters=counts))
    return queues


def readings(
    queue: Queue, kind: str, labels: Mapping[str, str]
) -> Iterator[Measurement]:
    """Yield ``event:<kind>_<key>`` for every counter; the backlog is a gauge."""
    for key, count in queue.counters.items():
        gauge = {"kind": "gauge"} if key == "backlog" else {}
        yield Measurement(
            metric=f"event:{kind}_{key}", value=count, labels={**labels, **gauge}
        )


def _facts(groups: Mapping[str, str | None]) -> dict[str, object]:
    facts: dict[str, object] = {key: value for key, value in groups.items() if value}
    if facts.get("root"):
        facts["root"] = True
    return facts
