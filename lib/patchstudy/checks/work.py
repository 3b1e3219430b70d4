"""Whether a call stands for the same work in both variants."""

from collections.abc import Iterator
from typing import Final

import pandas as pd

from patchstudy.checks.doubts import Doubt, Material, cells
from patchstudy.records import Caveat, Severity

#: Calls per bit of one variant over those of the other from which it is told (ours).
UNLIKE: Final = 1.25


def calls_per_bit(found: Material) -> Iterator[Doubt]:
    """Calls that were counted, and that do not grow with what was moved.

    ``alloc_count`` over ``throughput`` in both variants: where they differ, the mean
    time of a call says nothing about the cost of a packet.
    """
    design = found.study.design
    for (device, workload), rows in cells(found.runs):
        base, new = (
            _calls(rows[rows["variant"] == name])
            for name in (design.baseline, design.patched[0])
        )
        if base is None or new is None:
            continue
        calls, rate = new[0] / base[0], new[1] / base[1]
        if not 1 / UNLIKE <= calls / rate <= UNLIKE:
            yield Doubt(
                caveat=Caveat(
                    code="calls-per-bit",
                    severity=Severity.DOUBT,
                    text=f"{calls:.3g} times as many allocations for {rate:.3g} times "
                    "the bits: an allocation is not the same work in both variants, or "
                    "they were counted over different times",
                    todo="count calls, bytes and packets over the same time, and "
                    "compare per packet",
                ),
                device=device,
                workload=workload,
            )


def _calls(rows: pd.DataFrame) -> tuple[float, float] | None:
    """Mean count of calls and mean throughput of a variant, both above zero."""
    plain = rows[rows["labels"].map(len) == 0]
    count, rate = (
        float(plain.loc[plain["metric"] == name, "value"].mean())
        for name in ("alloc_count", "throughput")
    )
    return (count, rate) if count > 0 and rate > 0 else None
