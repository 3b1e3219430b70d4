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
from patchstudy.compare import SENSITIVE_LOW, Comparison
from patchstudy.decisions import Decision
from patchstudy.findings import Assessment
from patchstudy.metrics import Kind, Scale, metric
from patchstudy.patchfile import Patch
from patchstudy.report import answer as brief
from patchstudy.report import circumstances, figure_tables, ledger, noise
from patchstudy.report.lead import Intervals, Marks
from patchstudy.report.results import digest, inputs_digest, results
from patchstudy.report.table import Column, Linked, Note, Table, Vector
from patchstudy.sentences import (
    change_in_words,
    floor_of,
    shared_unit,
    values_in_words,
)
from patchstudy.stats import Estimate
from patchstudy.study import Role
from patchstudy.tables import Question
from patchstudy.units import for_people, with_interval
from patchstudy.verdicts import Finding, Guarded

Part = Table | Note | Vector | Marks | Intervals

_DECISION_KINDS: Final = {
    Decision.ACCEPT: "accept",
    Decision.SMALL: "accept",
    Decision.VETO: "veto",
    Decision.NOT_YET: "notyet",
    Decision.REJECT: "reject",
    Decision.MIXED: "mixed",
}
#: Most doubts that the first screen tells.
_MOST_DOUBTS: Final = 3
#: p below which a different spread is mentioned; it is exploratory.
SPREAD_P: Final = 0.05


def show(parts: object) -> None:
    """Show one part, or a tuple of several, below a notebook cell."""
    for part in parts if isinstance(parts, tuple) else (parts,):
        display(part)


# ---- 1 and 2: verdict and cost ------------------------------------------------------


def answer(assessment: Assessment) -> tuple[Part, ...]:
    """The first screen: question, verdict, changes, guards, what is not known."""
    changed, guarded = brief.intervals(assessment), brief.marks(assessment)
    return (
        Note("question", assessment.study.design.question),
        verdict(assessment),
        *([] if changed is None else [changed]),
        _no_guards() if guarded is None else guarded,
        *_unknown(assessment),
    )


def _no_guards() -> Note:
    """What is to be said where no guard is declared."""
    return Note("caveat", "No guard is declared: what the patch costs is unknown.")


def _unknown(assessment: Assessment) -> Iterator[Note]:
    missing = "; ".join(brief.not_measured(assessment))
    if missing:
        yield Note("caveat", f"{missing}.", "Not measured:")
    found = brief.doubts(assessment)
    if found:
        said = "; ".join(dict.fromkeys(one.sentence for one in found[:_MOST_DOUBTS]))
        more = len(found) - _MOST_DOUBTS
        tail = f"; and {more} more below" if more > 0 else ""
        yield Note("caveat", f"{said}{tail}.", "Doubts:")


def verdict(assessment: Assessment) -> Note:
    """The decision and why, in one sentence."""
    kind = _DECISION_KINDS[assessment.decision]
    title = str(assessment.decision).upper()
    return Note(kind, brief.headline(assessment), title)


def study(assessment: Assessment) -> tuple[Part, ...]:
    """How it was measured, and the patch."""
    patch = assessment.study.patch
    design = assessment.study.design
    return (
        *([Note("text", _patch_words(patch))] if patch is not None else []),
        *([Note("text", design.setting)] if design.setting else []),
    ) or (Note("empty", "The study does not say how it was measured."),)


def _patch_words(patch: Patch) -> str:
    """The patch by its subject, its driver and its size; people are not named."""
    lines = sum(one.added + one.removed for one in patch.files)
    files = ", ".join(one.path for one in patch.files[:3])
    more = f" and {len(patch.files) - 3} more" if len(patch.files) > 3 else ""
    where = f" It changes {lines} lines of {files}{more}." if patch.files else ""
    driver = f", driver {patch.driver}" if patch.driver else ""
    return f"The patch: {patch.subject or 'a diff without subject'}{driver}.{where}"


def devices(assessment: Assessment) -> Part:
    """The decision on each device, where there are several or something is known."""
    described = assessment.study.design.devices
    if len(assessment.devices) == 1 and not described.get(assessment.devices[0].device):
        return Note("empty", "There is one device.")
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
    return _change_table(assessment, chosen, caption, "changes")


def guards(assessment: Assessment) -> Part:
    """What the patch must not harm, and whether it does."""
    chosen = _of(assessment, Role.GUARD)
    if not chosen:
        return _no_guards()
    caption = "Guards: what the patch may cost"
    return _change_table(assessment, chosen, caption, "guards")


def _level(assessment: Assessment) -> str:
    return f"{100 * (1 - assessment.study.design.alpha):g} %"


def _change_table(
    assessment: Assessment, chosen: Sequence[Finding], caption: str, name: str
) -> Table:
    rows = tuple(
        (
            _quantity(one),
            _where(one),
            *values_in_words(one.comparison),
            change_in_words(one.comparison),
            one.planned.margin.text + ("" if one.planned.margin.declared else "*"),
            _behind(assessment, one.comparison),
            _answer(one),
        )
        for one in chosen
    )
    level = f"Change [{_level(assessment)}]"
    numbers = ("Baseline", "Patched", level, "Margin", "Runs")
    if any(not one.planned.margin.declared for one in chosen):
        caption += "; * a default margin, none was declared"
    columns = (*_columns("Metric", "Where"), *_numbers(*numbers), Column("Answer"))
    return Table(columns, rows, caption, name=name)


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


def _behind(assessment: Assessment, one: Comparison) -> str:
    """The replication, as a link to the runs behind the number."""
    question, text = one.question, _replication(one)
    name = ledger.anchor(assessment, question.device, question.workload)
    return Linked((text, f"#{name}")) if name and not question.problem else text


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
    chosen = figure_tables.declared(assessment)
    if not chosen:
        return Note("caveat", "Nothing could be compared.")
    rows = figure_tables.forest_rows(assessment)
    alt = " ".join(one.sentence for one in chosen)
    return Vector(
        figures.to_svg(figures.forest(rows)),
        alt,
        f"Change of every declared metric with its {_level(assessment)} interval; the "
        "band is the margin. An interval beside the zero line shows a difference; "
        "one inside the band shows that it does not matter.",
    )


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
    return drawn or (Note("empty", "No guard is harmed or unresolved."),)


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
    drawn: list[Part] = []
    for name, tool, table in figure_tables.courses(assessment):
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
    return tuple(drawn) or (Note("empty", "No tool printed intervals."),)


# ---- 5 to 6: treatment and bottleneck -----------------------------------------------


def treatment(assessment: Assessment) -> Part:
    """Facts of the runs by variant, to see whether the treatment is the difference."""
    found = circumstances.facts(assessment.study)
    if not found:
        words = "No fact of the runs is recorded, so this cannot be told."
        return Note("caveat", words)
    rows = tuple(
        (one.name, *(_few(values) for values in one.values_by_variant), one.meaning)
        for one in found
    )
    variants = assessment.study.design.variants
    columns = _columns("Fact", *variants, "Between variants")
    return Table(columns, rows, "Facts of the measured runs")


def _few(values: Sequence[str]) -> str:
    names = [value or "(none)" for value in values]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (", ".join(names[:3]) or "-") + more


def bottleneck(assessment: Assessment) -> Part:
    """What limits each variant: the link, the offered load, or one full CPU."""
    rows = tuple(
        (
            one.device,
            one.workload,
            one.variant,
            "-" if one.busiest is None else f"{100 * one.busiest:.1f} %",
            "-" if one.softirq is None else f"{100 * one.softirq:.1f} %",
            "-" if one.ceiling is None else for_people(one.ceiling, "bit/s"),
            ", ".join(one.by) or "not known",
        )
        for one in circumstances.limits(assessment)
    )
    if not rows:
        return Note("empty", "No CPU or ceiling is known.")
    numbers = _numbers("Busiest CPU", "Softirq", "Ceiling")
    return Table(
        (*_columns("Device", "Workload", "Variant"), *numbers, Column("Limited by")),
        rows,
        "What limits the rate in each variant (medians over runs)",
    )


# ---- 8: how far to trust it ---------------------------------------------------------


def doubts(assessment: Assessment) -> Part:
    """What weakens a result that was declared, the gravest first, with what to do."""
    found = brief.doubts(assessment)
    if not found:
        return Note("text", "The checks found nothing graver than a note.")
    rows = tuple(
        (
            one.weight,
            "; ".join(one.places),
            one.metric or "-",
            one.text,
            one.todo or "-",
        )
        for one in found
    )
    return Table(
        _columns("Weight", "Where", "Metric", "What", "What would help"),
        rows,
        "Doubts about the data",
    )


def notes(assessment: Assessment) -> Part:
    """What else the checks found, said once for all places of which it is true."""
    above = {(one.text, one.todo) for one in brief.doubts(assessment)}
    found = [
        one
        for one in brief.once(assessment.doubts)
        if (one.text, one.todo) not in above
    ]
    if not found:
        return Note("empty", "No notes.")
    rows = tuple(
        (
            "; ".join(f"{place} {one.metric}".strip() for place in one.places),
            one.text,
            one.todo or "-",
        )
        for one in found
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
        return (Note("empty", "Nothing could be compared."),)
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
    numbers = (100 * x for x in (change.value, change.low, change.high))
    value, low, high = with_interval(*numbers, floor=-100.0)
    return f"{value} % [{low}, {high}], p {_p(one.counted.p_value)}"


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
    scaled = (scale * number for number in numbers)
    value, low, high = with_interval(*scaled, floor=floor_of(one.scale))
    unit = "%" if one.scale is Scale.RATIO else "pp" if _in_percent(one) else ""
    return f"{value} {unit} [{low}, {high}]"


def _in_percent(one: Comparison) -> bool:
    kinds = {Kind.SHARE, Kind.PROPORTION, Kind.COUNT, Kind.PASSFAIL}
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
    tested = tuple(noise.margins(assessment))
    if not found:
        return (Note("empty", _NO_SPREAD), *tested)
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
    return (table, *_spread_notes(assessment, found), *tested)


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
        return (Note("empty", "No declared metric was measured on two devices."),)
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
    scaled = (scale * number for number in numbers)
    value, low, high = with_interval(*scaled, floor=floor_of(one.scale))
    return f" Over all {len(one.used)} devices: {value} {unit} [{low}, {high}]."


def exploratory(assessment: Assessment) -> Part:
    """Metrics that nobody declared, or declared as diagnostics; not decided on."""
    chosen = [
        one
        for one in _of(assessment, Role.DIAGNOSTIC)
        if one.comparison.change is not None
    ]
    if not chosen:
        return Note("empty", "No further metric was measured.")
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
        return Note("empty", "No claim of a mail is recorded in study.toml.")
    rows = tuple(
        (
            one["text"],
            " ".join([one["metric"], one["device"], one["workload"]]).strip(),
            _stated(one),
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


def _stated(claim: Mapping[str, Any]) -> str:
    beside = f" to {claim['reference']}" if claim["reference"] else ""
    return (claim["change"] or "-") + beside


def _outcome(check: Mapping[str, Any]) -> str:
    where = ", ".join(one for one in (check["device"], check["workload"]) if one)
    told = f"{check['outcome']} ({check['why']})"
    return f"{where}: {told}" if where else told


def behind(assessment: Assessment) -> tuple[Part, ...]:
    """Every measured run with its values and its raw files."""
    return ledger.tables(assessment) or (Note("empty", "No run was measured."),)


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
    made = results(assessment)["provenance"]
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
        Note("text", f"Results (report.json): sha256 {digest(assessment)}."),
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
