"""Whether the treatment is real, and the only difference."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from patchstudy.checks.doubts import Doubt, Material, run_cells, some
from patchstudy.checks.kernel import holds_messages
from patchstudy.records import Caveat, Severity
from patchstudy.study import Design, Run

#: What a tool was told to do; times are left out, they vary in the last digits.
_SETTINGS: Final = frozenset(
    {"blksize", "direction", "mss", "protocol", "streams", "target_bitrate"}
)
#: Facts that name a run, a moment or the treatment's own parts.
_NAMING: Final = frozenset(
    {
        "block", "boot_id", "commands", "ended_at", "loadavg_after", "loadavg_before",
        "position", "purpose", "run", "started_at", "topology_id", "workload",
    }
)  # fmt: skip


def differences(found: Material) -> Iterator[Doubt]:
    """Facts that differ between the variants beside the declared treatment."""
    expected = set(found.study.design.treatment)
    for (device, workload), runs in run_cells(found.study):
        facts = _facts_of(runs)
        differing = _differing(facts, found.study.design.variants)
        for name in sorted(expected):
            caveat = _treatment(name, facts.get(name, {}), found.study.design)
            if caveat is not None:
                yield Doubt(caveat=caveat, device=device, workload=workload)
        for name, text in differing.items():
            if name not in expected:
                yield Doubt(
                    caveat=Caveat(
                        code="another-difference",
                        severity=Severity.DOUBT,
                        text=f"{name} differs between the variants: {text}",
                        todo="make it the same, or declare it as treatment",
                    ),
                    device=device,
                    workload=workload,
                )


def _treatment(
    name: str, values: dict[str, list[str]], design: Design
) -> Caveat | None:
    """Say what is wrong with a fact by which the variants differ on purpose.

    Further variants may be copies (of the baseline, for the noise); the first differs.
    """
    base, new = (set(values.get(v, ())) for v in (design.baseline, design.patched[0]))
    if not (base and new):
        return _unrecorded(name)
    shared = sorted(base & new)
    if not shared:
        return None
    text = (
        f"{name} is the same in all variants"
        if base == new
        else f"{name} is {some(shared)} in runs of both variants"
    )
    return Caveat(
        code="treatment-same",
        severity=Severity.CAP,
        text=f"{text}: was the patched module loaded?",
        todo="compare the build ids of what was loaded",
    )


def _unrecorded(name: str) -> Caveat:
    return Caveat(
        code="treatment-unrecorded",
        severity=Severity.NOTE,
        text=f"{name}, by which the variants differ, was not recorded here",
        todo="write it into <workload>.run.json",
    )


def fact_files(found: Material) -> Iterator[Doubt]:
    """Fact files of the variants (offloads, driver) that differ in a line."""
    variants = found.study.design.variants
    texts: dict[tuple[str, str], dict[str, set[str]]] = {}
    for fact in found.study.facts:
        if fact.variant in variants and not holds_messages(fact):
            name = fact.name.removeprefix(f"{fact.variant}.")
            lines = texts.setdefault((fact.device, name), {})
            lines.setdefault(fact.variant, set()).update(fact.text.splitlines())
    for (device, name), lines in texts.items():
        odd = set.union(*lines.values()) - set.intersection(*lines.values())
        if len(lines) > 1 and odd:
            yield Doubt(
                caveat=Caveat(
                    code="another-difference",
                    severity=Severity.DOUBT,
                    text=f"facts {name} differ between variants: {some(sorted(odd))}",
                    todo="make it the same, or declare it as treatment",
                ),
                device=device,
            )


def _facts_of(runs: Iterable[Run]) -> dict[str, dict[str, list[str]]]:
    """Fact -> variant -> values of its runs, tool versions and settings included."""
    facts: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        told: dict[str, object] = dict(run.facts)
        told |= {
            f"{one.capture.tool} version": one.capture.tool_version
            for one in run.sources
            if one.capture.tool_version
        }
        told |= {
            f"{one.capture.tool} {key}": value
            for one in run.sources
            if one.capture.error is None  # a run that failed tells too little
            for key, value in one.capture.workload.items()
            if key in _SETTINGS
        }
        for name, value in told.items():
            if name not in _NAMING:
                by_variant = facts.setdefault(name, {})
                by_variant.setdefault(run.variant, []).append(str(value))
    return facts


def _differing(
    facts: dict[str, dict[str, list[str]]], variants: Sequence[str]
) -> dict[str, str]:
    """Facts whose sets of values differ; values that are new in each run name it."""
    differing = {}
    for name, by_variant in sorted(facts.items()):
        values = [value for these in by_variant.values() for value in these]
        sets = {variant: sorted(set(these)) for variant, these in by_variant.items()}
        names_runs = len(set(values)) > max(2, len(values) / 2)
        if len(sets) < 2 or names_runs or len(set(map(tuple, sets.values()))) == 1:
            continue
        differing[name] = "; ".join(
            f"{variant}: {some([value or '(none)' for value in sets[variant]])}"
            for variant in variants
            if variant in sets
        )
    return differing
