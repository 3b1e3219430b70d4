"""What the kernel says while it is measured."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from patchstudy.checks.doubts import Doubt, Material, some
from patchstudy.errors import printable
from patchstudy.loaders import dmesg
from patchstudy.records import Caveat, RawFile, Severity
from patchstudy.study import FactFile, Study


def kernel_warnings(found: Material) -> Iterator[Doubt]:
    """A warning of the kernel in a patched run that no baseline run has."""
    design = found.study.design
    for device, told in sorted(_splats(found.study).items()):
        known = {_without_numbers(one) for one in told.get(design.baseline, ())}
        for variant in design.patched:
            new = [x for x in told.get(variant, ()) if _without_numbers(x) not in known]
            if new:
                compared = design.baseline in told and variant == design.patched[0]
                caveat = _new_warning if compared else _other_warning
                yield Doubt(caveat=caveat(variant, new), device=device)


def _new_warning(variant: str, new: Sequence[str]) -> Caveat:
    return Caveat(
        code="kernel-warning",
        severity=Severity.CAP,
        text=f"{variant}: the kernel warns as with no baseline run: {_quoted(new)}",
        todo="find its cause; a patch with a new kernel warning is not accepted",
    )


def _other_warning(variant: str, new: Sequence[str]) -> Caveat:
    return Caveat(
        code="kernel-warning-alone",
        severity=Severity.DOUBT,
        text=f"{variant}: the kernel warns, and whether it does so with the baseline "
        f"is not known, or this variant does not decide: {_quoted(new)}",
        todo="record dmesg with the runs of every variant",
    )


def _quoted(texts: Sequence[str]) -> str:
    return printable(some([f"'{one}'" for one in texts]))


def _splats(study: Study) -> dict[str, dict[str, list[str]]]:
    """Device -> variant -> warnings, of every variant whose messages were recorded."""
    told: dict[str, dict[str, list[str]]] = {}
    for run in study.runs:
        for source in run.sources:
            if source.capture.tool == "dmesg":
                lines = told.setdefault(run.device, {}).setdefault(run.variant, [])
                lines.extend(_texts(source.capture.facts.get("splats")))
    for fact in study.facts:
        variant = _variant_of(fact, study)
        if variant and holds_messages(fact):
            raw = RawFile.of(Path(fact.name), fact.text.encode())
            lines = told.setdefault(fact.device, {}).setdefault(variant, [])
            lines.extend(_texts(dmesg.load(raw).facts.get("splats")))
    return told


def _texts(told: object) -> list[str]:
    return [str(one) for one in told] if isinstance(told, list) else []


def _variant_of(fact: FactFile, study: Study) -> str:
    """Variant of a fact file: by its name, or the only one of its boot."""
    if fact.variant in study.design.variants:
        return fact.variant
    there = {
        run.variant
        for run in study.runs
        if fact.boot and (run.device, run.boot) == (fact.device, fact.boot)
    }
    return there.pop() if len(there) == 1 else ""


def _without_numbers(text: str) -> str:
    """Return a message without what differs each time: process, address, line."""
    return re.sub(r"0x[0-9a-f]+|\d+", "#", text)


def holds_messages(fact: FactFile) -> bool:
    """Say whether a fact file holds messages of the kernel, each with its time."""
    return dmesg.sniff(RawFile.of(Path(fact.name), fact.text.encode()))
