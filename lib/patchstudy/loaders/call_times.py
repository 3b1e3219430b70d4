"""Mean times of calls, from a total of time and a number of calls; a part of pairs.

A driver that measures itself counts ``<name>_ns`` and ``<name>_count`` in one file: the
names tell the unit. Over the time between two snapshots their quotient is the mean time
of a call, ``alloc_time`` with ``alloc_count`` where the name is ``alloc``, else
``call_time:<name>`` with ``calls:<name>``. What the driver's own clock takes is in it.
A driver that counts its allocations without a clock has ``alloc_count`` alone.
"""

from collections.abc import Iterator
from dataclasses import replace

from patchstudy.records import Capture, Measurement


def with_times(delta: Capture) -> Capture:
    """Return the difference of two files of counters with the mean times it has."""
    return replace(delta, measurements=(*delta.measurements, *_times(delta)))


def _times(delta: Capture) -> Iterator[Measurement]:
    counters = {one.metric: one.value for one in delta.measurements if not one.labels}
    for metric, count in counters.items():
        name = metric.removeprefix("event:").removesuffix("_count")
        total = counters.get(f"event:{name}_ns")
        alloc = name == "alloc"
        if not metric.endswith("_count") or count <= 0:
            continue
        if total is not None:
            yield Measurement(
                metric="alloc_time" if alloc else f"call_time:{name}",
                value=total / count / 1e9,
                exposure=count,
            )
        if alloc or total is not None:
            called = "alloc_count" if alloc else f"calls:{name}"
            yield Measurement(metric=called, value=count)
