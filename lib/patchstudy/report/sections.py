"""What a report shows, section by section: tables, notes and figures of an assessment.

A notebook cell shows one section: ``show(sections.guards(assessment))``. A section
that has nothing to show says so in a note.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd
from IPython.display import display

from patchstudy import figures, together, variances
from patchstudy.checks import CPU_SATURATED, ceiling
from patchstudy.compare import SENSITIVE_LOW, Comparison
from patchstudy.decisions import Decision
from patchstudy.findings import Assessment
from patchstudy.metrics import Kind, Scale, metric
from patchstudy.patchfile import Patch
from patchstudy.records import Severity
from patchstudy.report.results import digest, inputs_digest, results
from patchstudy.report.table import Column, Note, Table, Vector
from patchstudy.sentences import change_in_words, shared_unit, values_in_words
from patchstudy.stats import Estimate
from patchstudy.study import Role, Run
from patchstudy.tables import Question
from patchstudy.units import for_people
from patchstudy.verdicts import Finding, Guarded

Part = Table | Note | Vector

_DECISION_KINDS: Final = {
    Decision.ACCEPT: "accept",
    Decision.SMALL: "accept",
    Decision.VETO: "veto",
    Decision.NOT_YET: "notyet",
    Decision.REJECT: "reject",
    Decision.MIXED: "mixed",
}
#: p below which a different spread is mentioned; it is exploratory.
SPREAD_P: Final = 0.05


def show(parts: object) -> None:
    """Show one part, or a tuple of several, below a notebook cell."""
    for part in parts if isinstance(parts, tuple) else (parts,):
        display(part)


# ---- 1 and 2: verdict and cost ------------------------------------------------------


def verdict(assessment: Assessment) -> Note:
    """The decision in one sentence."""
    kind = _DECISION_KINDS[assessment.decision]
    word = str(assessment.decision)
    said = assessment.sentence.lower().startswith(word)
    text = assessment.sentence if said else f"{word.upper()}. {assessment.sentence}"
    return Note(kind, text)


def study(assessment: Assessment) -> tuple[Part, ...]:
    """The question, how it was measured, and what was not measured."""
    design = assessment.study.design
    left_out = "; ".join(design.not_measured)
    patch = assessment.study.patch
    return (
        Note("text", design.question),
        *([Note("text", _patch_words(patch))] if patch is not None else []),
        *([Note("text", design.setting)] if design.setting else []),
        *([Note("caveat", f"Not measured: {left_out}.")] if left_out else []),
    )


def _patch_words(patch: Patch) -> str:
    """The patch by its subject, its driver and its size; people are not named."""
    lines = sum(one.added + one.removed for one in patch.files)
    files = ", ".join(one.path for one in patch.files[:3])
    more = f" and {len(patch.files) - 3} more" if len(patch.files) > 3 else ""
    where = f" It changes {lines} lines of {files}{more}." if patch.files else ""
    driver = f", driver {patch.driver}" if patch.driver else ""
    return f"The patch: {patch.subject or 'a diff without subject'}{driver}.{where}"


def devices(assessment: Assessment) -> Table:
    """The decision on each device."""
    described = assessment.study.design.devices
    return Table(
        _columns("Device", "What it is", "Variant", "Decision"),
        tuple(
            (
                one.device,
                "; ".join(described.get(one.device, {}).values()) or "-",
                one.variant,
                str(one.decision),
            )
            for one in assessment.devices
        ),
        "Decision on each device",
    )


def changes(assessment: Assessment) -> Table:
    """The primary metrics and the controls: both values and the change."""
    chosen = _of(assessment, Role.PRIMARY, Role.CONTROL)
    caption = "Primary metrics and controls; change with its confidence interval"
    return _change_table(chosen, caption, _level(assessment))


def guards(assessment: Assessment) -> Part:
    """What the patch must not harm, and whether it does."""
    chosen = _of(assessment, Role.GUARD)
    if not chosen:
        return Note("caveat", "No guard is declared: what the patch costs is unknown.")
    caption = "Guards: what the patch may cost"
    return _change_table(chosen, caption, _level(assessment))


def _level(assessment: Assessment) -> str:
    return f"{100 * (1 - assessment.study.design.alpha):g} %"


def _change_table(chosen: Sequence[Finding], caption: str, level: str) -> Table:
    rows = tuple(
        (
            _quantity(one),
            _where(one),
            *values_in_words(one.comparison),
            change_in_words(one.comparison),
            one.planned.margin.text + ("" if one.planned.margin.declared else "*"),
            _replication(one.comparison),
            _answer(one),
        )
        for one in chosen
    )
    numbers = ("Baseline", "Patched", f"Change [{level}]", "Margin", "Runs")
    if any(not one.planned.margin.declared for one in chosen):
        caption += "; * a default margin, none was declared"
    columns = (*_columns("Metric", "Where"), *_numbers(*numbers), Column("Answer"))
    return Table(columns, rows, caption)


def _quantity(one: Finding) -> str:
    """The metric with the unit of its values: ``Throughput [Mbit/s]``."""
    unit = shared_unit(one.comparison)[1]
    return one.planned.metric.label + (f" [{unit}]" if unit else "")


def _where(one: Finding) -> str:
    question, variant = one.comparison.question, one.comparison.variant
    named = f", {variant}" if one.named or variant != "patched" else ""
    return f"{question.workload} on {question.device}{named}"


def _replication(one: Comparison) -> str:
    runs = f"{one.n_baseline}+{one.n_patched}"
    return f"{runs} in {one.blocks}" if one.blocks else runs


def _answer(one: Finding) -> str:
    if one.comparison.question.problem:
        return "not measured"
    if one.guarded is not None:
        return str(one.guarded)
    prefix = "control: " if one.role is Role.CONTROL else ""
    return prefix + ", ".join([str(one.verdict), *one.qualifiers])


def sentences(assessment: Assessment) -> tuple[Note, ...]:
    """Every declared finding in one sentence."""
    return tuple(
        Note("text", f"{one.comparison.question.device}: {one.sentence}")
        for one in _of(assessment, Role.PRIMARY, Role.CONTROL, Role.GUARD)
    )


# ---- 3 to 4: figures ----------------------------------------------------------------


def forest(assessment: Assessment) -> Part:
    """Every declared change with its interval against its margin."""
    chosen = [
        one
        for one in _of(assessment, Role.PRIMARY, Role.CONTROL, Role.GUARD)
        if one.comparison.change is not None
    ]
    if not chosen:
        return Note("caveat", "Nothing could be compared.")
    rows = pd.DataFrame([_forest_row(one) for one in chosen])
    alt = " ".join(one.sentence for one in chosen)
    return Vector(
        figures.to_svg(figures.forest(rows)),
        alt,
        f"Change of every declared metric with its {_level(assessment)} interval; the "
        "band is the margin. An interval beside the zero line shows a difference; "
        "one inside the band shows that it does not matter.",
    )


def _forest_row(one: Finding) -> dict[str, object]:
    comparison = one.comparison
    ratio = comparison.scale is Scale.RATIO
    scale, axis = _axis(comparison)
    change = comparison.change
    ends = (change.value, change.low, change.high) if change else (np.nan,) * 3
    margin = np.nan if one.margin is None else one.margin
    return {
        "name": f"{one.planned.metric.name}, {comparison.question.workload}",
        "device": comparison.question.device,
        "role": str(one.role),
        "change": ends[0] / scale,
        "low": ends[1] / scale,
        "high": ends[2] / scale,
        "margin": (np.expm1(margin) if ratio else margin) / scale,
        "axis": axis,
        "verdict": _answer_in_brief(one),
    }


def _axis(one: Comparison) -> tuple[float, str]:
    """Scale and unit of a change: percent, points, or the unit of a difference."""
    if one.scale is Scale.RATIO:
        return 0.01, "%"
    scale, unit = shared_unit(one)
    return scale, "pp" if unit.startswith("%") else unit or "count"


def _answer_in_brief(one: Finding) -> str:
    if one.guarded is not None:
        return str(one.guarded)
    small = ", small" if "at most small" in one.qualifiers else ""
    return f"{one.verdict}{small}"


def all_runs(assessment: Assessment) -> tuple[Part, ...]:
    """Every unit of the primary metrics and controls, in order of time."""
    return tuple(_runs_figures(assessment, {Role.PRIMARY, Role.CONTROL}))


def guard_runs(assessment: Assessment) -> tuple[Part, ...]:
    """Every unit of the guards that are broken, harmed or unresolved."""
    telling = {Guarded.BROKEN, Guarded.HARM, Guarded.UNRESOLVED}
    keys = {
        one.comparison.question.key
        for one in assessment.findings
        if one.guarded in telling
    }
    drawn = tuple(_runs_figures(assessment, {Role.GUARD}, keys))
    return drawn or (Note("text", "No guard is harmed or unresolved."),)


def _runs_figures(
    assessment: Assessment, roles: set[Role], keys: set[str] | None = None
) -> Iterator[Vector]:
    """One figure a metric: all its workloads and devices."""
    by_metric: dict[str, list[Question]] = {}
    for question in assessment.material.asked:
        wanted = keys is None or question.key in keys
        if question.role in roles and wanted and not question.problem:
            by_metric.setdefault(question.planned.metric.name, []).append(question)
    units = assessment.material.units
    for questions in by_metric.values():
        quantity = questions[0].planned.metric
        table = units[units["question"].isin([one.key for one in questions])]
        plot = figures.runs(
            table,
            label=quantity.label,
            unit=quantity.unit,
            variants=assessment.study.design.variants,
        )
        yield Vector(
            figures.to_svg(plot),
            _medians_in_words(table, quantity.unit, quantity.label),
            f"{quantity.label}: every {questions[0].unit} in order of time; the line "
            "is the median of its variant, bands are blocks.",
        )


def _medians_in_words(table: pd.DataFrame, unit: str, label: str) -> str:
    keys = ["device", "workload", "variant"]
    medians = table.groupby(keys, as_index=False)["value"].median()
    parts = [
        f"{variant} {for_people(value, unit)} on {device}, {workload}"
        for device, workload, variant, value in medians.itertuples(index=False)
    ]
    return f"{label}, every unit in order of time. Medians: {'; '.join(parts)}."


def course(assessment: Assessment) -> tuple[Part, ...]:
    """The course within runs of the primary metrics, where tools print intervals."""
    intervals = assessment.material.intervals
    drawn: list[Part] = []
    for name, tool in _courses(assessment):
        table = intervals[(intervals["metric"] == name) & (intervals["tool"] == tool)]
        table = table[[not labels for labels in table["labels"]]]
        quantity = metric(name)
        plot = figures.course(
            table,
            label=quantity.label,
            unit=quantity.unit,
            variants=assessment.study.design.variants,
        )
        drawn.append(
            Vector(
                figures.to_svg(plot),
                f"{quantity.label} within each run, interval by interval, from {tool}.",
                f"{quantity.label} within each run ({tool}); thick: median over the "
                "runs of a variant. Intervals of one run are never replicates.",
            )
        )
    return tuple(drawn) or (Note("text", "No tool printed intervals."),)


def _courses(assessment: Assessment) -> list[tuple[str, str]]:
    """Metric and tool of the intervals behind the primary metrics.

    A sender prints what it sent: then the send rate is shown in place of throughput.
    """
    intervals = assessment.material.intervals
    if intervals.empty:
        return []
    tools = {
        one.tool
        for one in assessment.material.asked
        if one.role is Role.PRIMARY and not one.problem
    }
    plain = intervals[[not labels for labels in intervals["labels"]]]
    found = plain[["metric", "tool"]].drop_duplicates()
    wanted = ("throughput", "send_rate", "transaction_rate", "packet_rate")
    return [
        (str(name), str(tool))
        for name, tool in found.itertuples(index=False)
        if name in wanted and tool in tools
    ]


# ---- 5 to 6: treatment and bottleneck -----------------------------------------------


def treatment(assessment: Assessment) -> Part:
    """Facts of the runs by variant, to see whether the treatment is the difference."""
    design = assessment.study.design
    facts: dict[str, dict[str, set[str]]] = {}
    for run in assessment.study.runs:
        if run.measuring:
            for name, value in _identity(run).items():
                by_variant = facts.setdefault(name, {})
                by_variant.setdefault(run.variant, set()).add(value)
    if not facts:
        words = "No fact of the runs is recorded, so this cannot be told."
        return Note("caveat", words)
    rows = []
    for name, by_variant in sorted(facts.items()):
        sets = [by_variant.get(variant, set()) for variant in design.variants]
        same = all(one == sets[0] for one in sets)
        meaning = "same" if same else "differs"
        if not same and name in design.treatment:
            meaning = "differs, as declared"
        rows.append((name, *(_few(one) for one in sets), meaning))
    return Table(
        _columns("Fact", *design.variants, "Between variants"),
        tuple(rows),
        "Facts of the measured runs",
    )


_PER_RUN: Final = frozenset(
    {
        "block", "boot_id", "commands", "ended_at", "loadavg_after", "loadavg_before",
        "position", "purpose", "run", "started_at", "topology_id", "workload",
    }
)  # fmt: skip


def _identity(run: Run) -> dict[str, str]:
    told = {name: str(x) for name, x in run.facts.items() if name not in _PER_RUN}
    told |= {
        f"{one.capture.tool} version": one.capture.tool_version
        for one in run.sources
        if one.capture.tool_version
    }
    return told


def _few(values: set[str]) -> str:
    names = sorted(value or "(none)" for value in values)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (", ".join(names[:3]) or "-") + more


def bottleneck(assessment: Assessment) -> Part:
    """What limits each variant: the link, the offered load, or one full CPU."""
    rows = [
        (device, workload, variant, *_limits(assessment, device, workload, variant))
        for device, workload in _cells(assessment)
        for variant in assessment.study.design.variants
    ]
    if not rows:
        return Note("text", "No CPU or ceiling is known.")
    numbers = _numbers("Busiest CPU", "Softirq", "Ceiling")
    return Table(
        (*_columns("Device", "Workload", "Variant"), *numbers, Column("Limited by")),
        tuple(rows),
        "What limits the rate in each variant (medians over runs)",
    )


def _cells(assessment: Assessment) -> list[tuple[str, str]]:
    return sorted(
        {
            (one.comparison.question.device, one.comparison.question.workload)
            for one in _of(assessment, Role.PRIMARY, Role.CONTROL)
        }
    )


def _limits(
    assessment: Assessment, device: str, workload: str, variant: str
) -> tuple[str, str, str, str]:
    runs = assessment.material.runs
    here = runs[
        (runs["device"] == device)
        & (runs["workload"] == workload)
        & (runs["variant"] == variant)
    ]
    busiest, softirq = (_median(here, name) for name in ("cpu_busy_max", "cpu_softirq"))
    limits = [
        limit
        for one in assessment.material.asked
        if (one.device, one.workload) == (device, workload)
        if (limit := ceiling(assessment.study, one)) is not None
    ]
    limit = min(limits, default=None)
    rate = _median(here[here["metric"] == "throughput"], "throughput")
    by = []
    if busiest is not None and busiest >= CPU_SATURATED:
        by.append("one full CPU")
    if limit is not None and rate is not None and rate >= 0.985 * limit[0]:
        by.append(limit[1])
    return (
        "-" if busiest is None else f"{100 * busiest:.1f} %",
        "-" if softirq is None else f"{100 * softirq:.1f} %",
        "-" if limit is None else for_people(limit[0], "bit/s"),
        ", ".join(by) or "not known",
    )


def _median(rows: pd.DataFrame, name: str) -> float | None:
    values = rows.loc[rows["metric"] == name, "value"]
    return None if values.empty else float(values.median())


# ---- 8: how far to trust it ---------------------------------------------------------


def doubts(assessment: Assessment) -> Part:
    """Everything that weakens a result, the gravest first, with what to do."""
    rows = tuple(
        (
            str(one.caveat.severity),
            " ".join(part for part in (one.device, one.workload) if part) or "all",
            one.question.rsplit("/", 1)[-1],
            one.caveat.text,
            one.caveat.todo or "-",
        )
        for one in assessment.doubts
        if one.caveat.severity is not Severity.NOTE
    )
    if not rows:
        return Note("text", "The checks found nothing graver than a note.")
    return Table(
        _columns("Weight", "Where", "Metric", "What", "What would help"),
        rows,
        "Doubts about the data",
    )


def notes(assessment: Assessment) -> Part:
    """What else the checks found, said once for all places of which it is true."""
    said: dict[tuple[str, str], list[str]] = {}
    for one in assessment.doubts:
        if one.caveat.severity is Severity.NOTE:
            where = " ".join(part for part in (one.device, one.workload) if part)
            metric = one.question.rsplit("/", 1)[-1]
            key = (one.caveat.text, one.caveat.todo)
            said.setdefault(key, []).append(f"{where} {metric}".strip() or "all")
    if not said:
        return Note("text", "No notes.")
    rows = tuple(
        ("; ".join(places), text, todo or "-") for (text, todo), places in said.items()
    )
    return Table(_columns("Where", "What", "What would help"), rows, "Notes")


def sensitivity(assessment: Assessment) -> tuple[Part, ...]:
    """The estimate beside its rank-based companion and further second opinions."""
    chosen = [
        one
        for one in _of(assessment, Role.PRIMARY, Role.CONTROL, Role.GUARD)
        if one.comparison.change is not None
    ]
    if not chosen:
        return (Note("text", "Nothing could be compared."),)
    rows = tuple(
        (
            one.planned.metric.label,
            _where(one),
            change_in_words(one.comparison),
            _p(one.comparison.p_value),
            _p(one.comparison.p_adjusted),
            _companion(one.comparison),
            _p(one.comparison.companion and one.comparison.companion.p_value),
            _wins(one.comparison),
        )
        for one in chosen
    )
    numbers = ("t interval", "p", "p adjusted", "Rank-based interval", "p exact",
               "Patched is larger in")  # fmt: skip
    return (
        Table(
            (*_columns("Metric", "Where"), *_numbers(*numbers)),
            rows,
            "Does the answer depend on the method? Adjusted: Holm over the devices, "
            "for guards over those of the device",
        ),
        _second_opinions(chosen),
    )


def _second_opinions(chosen: Sequence[Finding]) -> Table:
    rows = tuple(
        (
            one.planned.metric.label,
            _where(one),
            _estimate(one.comparison, one.comparison.ratio_of_means),
            _without_outliers(one.comparison),
            _counted(one.comparison),
            _spread(one.comparison),
            _confirmation(one.comparison),
        )
        for one in chosen
    )
    names = ("Ratio of arithmetic means", "Without outliers", "As Poisson counts")
    return Table(
        (
            *_columns("Metric", "Where"),
            *_numbers(*names),
            *_columns("Spread, patched to baseline", "Ranks"),
        ),
        rows,
        "Second opinions that decide nothing: Fieller's interval, the change without "
        "flagged outliers, the exact ratio of Poisson rates where runs scatter no more "
        "than that, the test of equal spread (Brown-Forsythe, exploratory)",
    )


def _estimate(one: Comparison, estimate: Estimate | None) -> str:
    """Write a change that is no other in the table: no words for none at all."""
    if estimate is None:
        return "-"
    if not (np.isfinite(estimate.low) and np.isfinite(estimate.high)):
        return "unbounded"
    return change_in_words(replace(one, change=estimate, effect=None))


def _counted(one: Comparison) -> str:
    if one.counted is None:
        return "-"
    if one.counted.change is None:
        return f"not used: {one.counted.why_not}"
    change = one.counted.change
    ends = ", ".join(f"{100 * end:+.3g}" for end in (change.low, change.high))
    p_value = _p(one.counted.p_value)
    return f"{100 * change.value:+.3g} % [{ends}], p {p_value}"


def _without_outliers(one: Comparison) -> str:
    if one.without_outliers is None:
        return "-"
    count = len(one.without_outliers.left_out)
    return f"{_estimate(one, one.without_outliers.change)} ({count} left out)"


def _spread(one: Comparison) -> str:
    if one.spread is None:
        return "-"
    words = f"x {one.spread.ratio:.2g} (p {_p(one.spread.p_value)})"
    changed = one.spread.p_value < SPREAD_P
    return words + (": the patch changes the spread" if changed else "")


def _confirmation(one: Comparison) -> str:
    """Say where so few units cannot confirm anything by their ranks."""
    if one.companion is None or one.companion.least_p < SENSITIVE_LOW:
        return "-"
    units = f"{one.blocks} blocks"
    if not one.blocks and one.baseline and one.patched:
        units = f"n={one.baseline.n} and {one.patched.n}"
    return (
        f"no rank confirmation at {units}: p is never below {one.companion.least_p:.2g}"
    )


def _p(value: float | None) -> str:
    if value is None:
        return "-"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _companion(one: Comparison) -> str:
    if one.companion is None:
        return "-"
    estimate = one.companion.estimate
    if not (np.isfinite(estimate.low) and np.isfinite(estimate.high)):
        return "too few units"
    scale = 100.0 if _in_percent(one) else 1.0
    numbers = (estimate.value, estimate.low, estimate.high)
    value, low, high = (f"{scale * number:+.3g}" for number in numbers)
    unit = "%" if one.scale is Scale.RATIO else "pp" if _in_percent(one) else ""
    return f"{value} {unit} [{low}, {high}]"


def _in_percent(one: Comparison) -> bool:
    kinds = {Kind.SHARE, Kind.PROPORTION, Kind.COUNT}
    return one.scale is Scale.RATIO or one.question.planned.metric.kind in kinds


def _wins(one: Comparison) -> str:
    if one.companion is None:
        return "-"
    tied = one.effect is not None and one.effect.floored and one.effect.value == 0
    if tied:
        return "all tied"
    return f"{one.companion.wins:g} of {one.companion.pairs} pairs"


_NO_SPREAD: Final = (
    "No boot or block holds several runs of a variant that differ: the spread between "
    "boots and that between runs cannot be told apart."
)


def spread(assessment: Assessment) -> tuple[Part, ...]:
    """Whether the noise arises between boots or between runs, and what would help."""
    every = variances.components(assessment.material)
    found = [one for one in every if one.between or one.within]
    if not found:
        return (Note("text", _NO_SPREAD),)
    rows = tuple(
        (
            one.question.planned.metric.label,
            f"{one.question.workload} on {one.question.device}",
            one.variant,
            f"{one.groups} {one.level}s of {one.runs}",
            _deviation(one, one.between) + (" (set to 0)" if one.clamped else ""),
            _deviation(one, one.within),
            "any" if one.best is None else str(one.best),
            f"{100 * one.gain:.0f} %",
        )
        for one in found
    )
    numbers = ("Used", "sd between", "sd of runs", "Best runs", "Gain at most")
    table = Table(
        (*_columns("Metric", "Where", "Variant"), *_numbers(*numbers)),
        rows,
        "Where the spread arises (standard deviations). Best runs: in each boot or "
        f"block, at {variances.BOOT_COST_S:g} s to begin one and "
        f"{variances.RUN_COST_S:g} s a run. Gain: by how much endless runs in the same "
        "boots would narrow the interval of a variant's mean",
    )
    return (table, *_spread_notes(assessment, found))


def _deviation(one: variances.Components, value: float) -> str:
    if one.scale is Scale.RATIO:
        return f"{100 * value:.2g} %"
    quantity = one.question.planned.metric
    if quantity.kind in {Kind.SHARE, Kind.PROPORTION, Kind.COUNT}:
        return f"{100 * value:.2g} pp"
    return for_people(value, quantity.unit, digits=2)


def _spread_notes(
    assessment: Assessment, found: Sequence[variances.Components]
) -> Iterator[Note]:
    if any(one.clamped for one in found):
        text = "A variance between boots that comes out negative, which chance does "
        yield Note("text", text + "where boots add little, is set to 0.")
    if any(one.blocks for one in (x.comparison for x in assessment.findings)):
        text = "Compared within blocks, what the runs of a block share cancels: there "
        yield Note("text", text + "the spread between blocks does no harm.")


def devices_together(assessment: Assessment) -> tuple[Part, ...]:
    """One metric over several devices: each change, and whether they agree."""
    found = together.together(assessment.findings)
    if not found:
        return (Note("text", "No declared metric was measured on two devices."),)
    return tuple(part for one in found for part in _together_parts(one))


def _together_parts(one: together.Together) -> Iterator[Part]:
    rows = tuple(
        (
            each.comparison.question.device,
            change_in_words(each.comparison),
            _answer(each),
            one.left_out.get(each.comparison.question.device, "yes"),
        )
        for each in one.findings
    )
    columns = (Column("Device"), *_numbers("Change"), *_columns("Answer", "Compared"))
    first = one.findings[0]
    where = f"{first.planned.metric.label}, {first.comparison.question.workload}"
    yield Table(columns, rows, f"{where}: {len(rows)} devices side by side")
    yield Note("text", together.sentence(one) + _pooled_words(one))


def _pooled_words(one: together.Together) -> str:
    if one.pooled is None:
        return (
            f" With fewer than {together.ENOUGH_DEVICES} devices no change of all "
            "together is claimed."
        )
    numbers = (one.pooled.value, one.pooled.low, one.pooled.high)
    unit = "pp" if _in_percent(one.used[0].comparison) else ""
    if one.scale is Scale.RATIO:
        numbers, unit = tuple(map(np.expm1, numbers)), "%"
    scale = 100.0 if unit else 1.0
    value, low, high = (f"{scale * number:+.3g}" for number in numbers)
    return f" Over all {len(one.used)} devices: {value} {unit} [{low}, {high}]."


def exploratory(assessment: Assessment) -> Part:
    """Metrics that nobody declared, or declared as diagnostics; not decided on."""
    chosen = [
        one
        for one in _of(assessment, Role.DIAGNOSTIC)
        if one.comparison.change is not None
    ]
    if not chosen:
        return Note("text", "No further metric was measured.")
    rows = tuple(
        (
            _quantity(one),
            _where(one),
            *values_in_words(one.comparison),
            change_in_words(one.comparison),
            _replication(one.comparison),
            _p(one.comparison.p_adjusted),
        )
        for one in chosen
    )
    change = f"Change [{_level(assessment)}]"
    numbers = ("Baseline", "Patched", change, "Runs", "p (BH)")
    return Table(
        (*_columns("Metric", "Where"), *_numbers(*numbers)),
        rows,
        "Exploratory: looked at, not decided on (p after Benjamini-Hochberg)",
    )


# ---- 9 and 10: claims and provenance ------------------------------------------------


def claims(assessment: Assessment) -> Part:
    """What the patch mail says, beside what was found."""
    checked = results(assessment)["claims"]
    if not checked:
        return Note("text", "No claim of a mail is recorded in study.toml.")
    rows = tuple(
        (
            one["text"],
            " ".join([one["metric"], one["device"], one["workload"]]).strip(),
            one["change"] or "-",
            _outcome(one["from_mail"]),
            "; ".join(_outcome(x) for x in one["from_data"]),
        )
        for one in checked
    )
    names = ("Claim", "Of", "Stated", "By the mail's own numbers", "By the data")
    caption = (
        "Claims: in brackets what rounding leaves (the mail's numbers) or the "
        "confidence interval (data)"
    )
    return Table(_columns(*names), rows, caption)


def _outcome(check: Mapping[str, Any]) -> str:
    where = ", ".join(one for one in (check["device"], check["workload"]) if one)
    told = f"{check['outcome']} ({check['why']})"
    return f"{where}: {told}" if where else told


def provenance(assessment: Assessment) -> tuple[Part, ...]:
    """The raw files by tool, and the digests by which this report can be checked."""
    by_tool: dict[str, dict[str, str]] = {}
    for run in assessment.study.runs:
        for source in run.sources:
            path = source.capture.path.relative_to(assessment.study.folder).as_posix()
            files = by_tool.setdefault(source.capture.tool, {})
            files[path] = source.capture.sha256
    rows = tuple(
        (tool, str(len(files)), inputs_digest(files))
        for tool, files in sorted(by_tool.items())
    )
    content = results(assessment)
    made = content["provenance"]
    versions = ", ".join(f"{name} {x}" for name, x in made["versions"].items())
    return (
        Table(
            (Column("Tool"), Column("Files", "right"), Column("sha256 of their list")),
            rows,
            "Raw files (of a before/after pair the later one); report.json lists the "
            "sha256 of every file",
        ),
        *_published(made["published"]),
        Note("text", f"All inputs: sha256 {made['inputs_sha256']}."),
        Note("text", f"study.toml: sha256 {assessment.study.design.digest}."),
        Note("text", f"Results (report.json): sha256 {digest(content)}."),
        Note("text", f"Made by: {made['command']}, with {versions}."),
        *_hidden_words(made["hidden_names"]),
    )


def _published(told: Mapping[str, Sequence[str]]) -> Iterator[Note]:
    """Say of each device whose values were published where they were."""
    for device, places in told.items():
        yield Note("text", f"{device}: not measured here; from {'; '.join(places)}.")


def _hidden_words(count: int) -> Iterator[Note]:
    if count:
        yield Note(
            "text",
            f"{count} name(s) of hosts or users, or addresses, of the raw files are "
            "replaced (host-1, user-1, mac-1, address-1); the raw files hold them.",
        )


def _of(assessment: Assessment, *roles: Role) -> list[Finding]:
    return [one for one in assessment.findings if one.role in roles]


def _columns(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name) for name in names)


def _numbers(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "right") for name in names)
