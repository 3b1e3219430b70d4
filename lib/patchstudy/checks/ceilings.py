"""What a rate cannot exceed, and values that do."""

from collections.abc import Iterator
from typing import Final

import pandas as pd

from patchstudy.checks.doubts import Doubt, Material, cells, doubt_about, some
from patchstudy.metrics import Kind
from patchstudy.records import Caveat, Severity
from patchstudy.study import Study
from patchstudy.tables import Question
from patchstudy.units import for_people, to_base

#: A run this close to the ceiling is taken as limited by it (STATISTICS 3.8, ours).
NEAR_CEILING: Final = 0.985
#: A rate this far above the ceiling is an error of unit, MTU or clock (ours).
ABOVE_CEILING: Final = 1.002
#: A rate this far above what its tool was told to send is mentioned: a sender paces by
#: its own clock, in bursts, and no link forbids it (ours).
ABOVE_OFFERED: Final = 1.05
#: How far a share may lie outside 0 to 1 for the rounding of floats.
ROUNDING: Final = 1e-9
#: Busiest CPU from which a run is taken as limited by the CPU (netdev practice, ours).
CPU_SATURATED: Final = 0.97


def ceiling(study: Study, question: Question) -> tuple[float, str] | None:
    """Return what a rate cannot exceed here, and why; None where nothing limits it.

    The lowest of the declared ceiling, the payload share of the link (TCP: MSS of MSS
    plus 52 bytes of headers with time stamps plus 38 of Ethernet framing; UDP: datagram
    of datagram plus 28 plus 38) and the offered load.
    """
    limits = [*_hard(study, question), *_offered(study, question)]
    return min(limits, default=None)


def _hard(study: Study, question: Question) -> Iterator[tuple[float, str]]:
    """Yield what a rate cannot exceed: the link and the declared ceiling."""
    if question.planned.ceiling is not None:
        yield question.planned.ceiling, "the declared ceiling"
    if question.planned.metric.name == "throughput":
        yield from _link_limit(study, question)


def saturation(found: Material) -> Iterator[Doubt]:
    """Runs at a ceiling of link, offered load or declaration, or with a full CPU."""
    for question, units in found.deciding:
        limit = ceiling(found.study, question)
        if limit is None:
            continue
        near = units["value"] >= NEAR_CEILING * limit[0]
        for variant, rows in units[near].groupby("variant"):
            total = int((units["variant"] == variant).sum())
            shown = for_people(limit[0], question.planned.metric.unit)
            yield doubt_about(
                question, "saturated", Severity.NOTE,
                f"{len(rows)} of {total} {variant} units reach {limit[1]} ({shown})",
                "compare CPU per byte or packet instead, or use a faster link",
            )  # fmt: skip
    yield from _full_cpu(found)


def _full_cpu(found: Material) -> Iterator[Doubt]:
    busiest = found.runs[found.runs["metric"] == "cpu_busy_max"]
    for (device, workload), rows in cells(busiest):
        means = rows.groupby("variant")["value"].median()
        if len(means) and (means >= CPU_SATURATED).all():
            yield Doubt(
                caveat=Caveat(
                    code="cpu-saturated",
                    severity=Severity.NOTE,
                    text="the busiest CPU is full in every variant: the CPU limits "
                    "the rate",
                ),
                device=device,
                workload=workload,
            )


def impossible(found: Material) -> Iterator[Doubt]:
    """Values that cannot be: above link or ceiling, or a share outside 0 to 1."""
    for question, units in found.deciding:
        limit = min(_hard(found.study, question), default=None)
        bad = pd.Series(data=False, index=units.index)
        if limit is not None:
            bad |= units["value"] > ABOVE_CEILING * limit[0]
        if question.planned.metric.kind in {Kind.SHARE, Kind.PROPORTION, Kind.PASSFAIL}:
            bad |= (units["value"] < -ROUNDING) | (units["value"] > 1 + ROUNDING)
        if bad.any():
            worst = units.loc[bad, "value"].max()
            shown = for_people(worst, question.planned.metric.unit)
            above = limit is not None and worst > ABOVE_CEILING * limit[0]
            why = f": above {limit[1]}" if limit and above else ""
            yield doubt_about(
                question, "impossible", Severity.UNUSABLE,
                f"{shown} in {some(list(units.loc[bad, 'unit']))} cannot be{why}",
                "look for a wrong unit, MTU, link speed or clock",
            )  # fmt: skip


def above_offered(found: Material) -> Iterator[Doubt]:
    """Rates above what the tool was told to send."""
    for question, units in found.deciding:
        told = min(_offered(found.study, question), default=None)
        bad = units[units["value"] > ABOVE_OFFERED * told[0]] if told else units[:0]
        if told and len(bad):
            unit = question.planned.metric.unit
            worst = for_people(bad["value"].max(), unit)
            yield doubt_about(
                question, "above-offered", Severity.DOUBT,
                f"{worst} in {some(list(bad['unit']))} is more than the offered load "
                f"of {for_people(told[0], unit)}",
                "see whether all runs were told the same rate and number of streams",
            )  # fmt: skip


def _link_limit(study: Study, question: Question) -> Iterator[tuple[float, str]]:
    link = study.design.devices.get(question.device, {}).get("link", "")
    if not link:
        return
    number, _, unit = link.partition(" ")
    rate, _ = to_base(float(number), unit)
    for protocol, payload in _payloads(study, question):
        headers = 52 if protocol == "TCP" else 28
        yield rate * payload / (payload + headers + 38), f"the {link} link"


def _payloads(study: Study, question: Question) -> set[tuple[str, float]]:
    """Protocol and payload bytes of a packet, as the tools of the workload say."""
    found = set()
    for run in study.runs:
        if (run.device, run.workload) != (question.device, question.workload):
            continue
        for source in run.sources:
            said = source.capture.workload
            size = said.get("mss" if said.get("protocol") == "TCP" else "blksize")
            if isinstance(size, (int, float)) and 0 < size <= 9000:
                found.add((str(said.get("protocol")), float(size)))
    return found


def _offered(study: Study, question: Question) -> Iterator[tuple[float, str]]:
    if question.planned.metric.name != "throughput":
        return
    for run in study.runs:
        if (run.device, run.workload) != (question.device, question.workload):
            continue
        for source in run.sources:
            target = source.capture.workload.get("target_bitrate")
            streams = source.capture.workload.get("streams") or 1
            if isinstance(target, (int, float)) and target > 0:
                yield float(target) * float(streams), "the offered load"
