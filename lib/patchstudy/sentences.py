"""What a finding and a decision say, as it is printed in reports."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from patchstudy import failures, outcomes, stats
from patchstudy.compare import (
    Comparison,
    Goal,
    Summary,
    bare_count,
    error_rates,
    goal_of,
    units_each,
)
from patchstudy.decisions import (
    CONTRARY,
    DECIDING,
    Decision,
    DeviceDecision,
    contrary,
    is_open,
    kernel_warnings,
)
from patchstudy.failures import Failures
from patchstudy.metrics import Kind, Scale
from patchstudy.noise import Borrowed
from patchstudy.study import Planned, Role
from patchstudy.units import count_of, prefix, significant, with_interval
from patchstudy.verdicts import (
    AT_LEAST,
    LAYOUT_NOISE,
    NO_DIRECTION,
    NOT_TESTABLE,
    ONE_BOOT_EACH,
    RUNS_FAILED,
    SHARE_SUBSTITUTE,
    SUBSTITUTE,
    UNEQUAL_RATE,
    Finding,
    Guarded,
    Verdict,
    cap_of,
    claims_same,
)

#: Power at which the report says how many units a margin needs.
POWER: Final = 0.8
#: What became of a guard, as people read it; ``report.json`` has the short words.
GUARD_WORDS: Final = {
    Guarded.SAFE: "safe",
    Guarded.HARM: "worse, less than the margin",
    Guarded.BROKEN: "worse, more than the margin",
    Guarded.UNRESOLVED: "unresolved",
    Guarded.NOT_MEASURED: "not measured",
}
#: Opening of a veto that the kernel's own messages give.
KERNEL_VETO: Final = "Veto: a new kernel warning"


def change_in_words(comparison: Comparison) -> str:
    """Write the change with its interval: ``+5.9 % [+5.6, +6.1]``."""
    change = comparison.change
    if change is None:
        return "no change computed"
    if comparison.question.planned.metric.kind is Kind.EXACT:
        return _exact_in_words(comparison, change)
    if change.value == 0 and comparison.effect and comparison.effect.floored:
        nothing = comparison.baseline is not None and comparison.baseline.high == 0
        return "none in any run" if nothing else "identical in every run"
    if comparison.scale is Scale.RATIO:
        scale, unit = 0.01, "%"
    else:
        scale, unit = difference_unit(comparison)
    numbers = [value / scale for value in (change.value, change.low, change.high)]
    value, low, high = with_interval(*numbers, floor=floor_of(comparison.scale))
    return f"{value} {unit} [{low}, {high}]".replace("  ", " ")


def floor_of(scale: Scale) -> float:
    """Return the change in percent that no ratio reaches; a difference has none."""
    return -100.0 if scale is Scale.RATIO else -math.inf


def _exact_in_words(comparison: Comparison, change: stats.Estimate) -> str:
    """Write both numbers with all their digits: ``1448 to 1460 byte, +0.829 %``."""
    base, new = comparison.baseline, comparison.patched
    if base is None or new is None:
        return "no change computed"
    unit = comparison.question.planned.metric.unit
    end = f" {unit}" if unit != "1" else ""
    if change.value == 0:
        return f"exactly {base.mean:.12g}{end} in every run"
    share = f", {100 * change.value / base.mean:+.3g} %" if base.mean > 0 else ""
    return f"{change.value:+.12g}{end} ({base.mean:.12g} to {new.mean:.12g}{share})"


def _least_in_words(change: str) -> str:
    """Write a change that a ceiling cuts off: the bound that it exceeds, then all."""
    value, _, interval = change.rpartition(" [")
    low, _, high = interval.rstrip("]").partition(", ")
    unit = value.partition(" ")[2]
    risen = value.startswith("+")
    return f"at least {low if risen else high} {unit}".rstrip() + f": {change}"


def difference_unit(comparison: Comparison) -> tuple[float, str]:
    """Unit in which a difference is written: points for shares, a prefix else."""
    scale, unit = shared_unit(comparison)
    return scale, {"%": "pp", "% of pkts": "pp"}.get(unit, unit)


def shared_unit(comparison: Comparison) -> tuple[float, str]:
    """Scale and unit in which people read the values of both variants.

    Divide base-unit values by the scale. Shares are read in percent, counts with known
    exposure in percent of the packets.
    """
    quantity = comparison.question.planned.metric
    if quantity.kind in {Kind.SHARE, Kind.PROPORTION, Kind.PASSFAIL}:
        return 0.01, "%"
    if quantity.kind is Kind.COUNT:
        return (1.0, "") if bare_count(comparison) else (0.01, "% of pkts")
    values = (comparison.baseline, comparison.patched)
    size = max((abs(one.mean) for one in values if one is not None), default=0.0)
    return prefix(size, quantity.unit)


def values_in_words(comparison: Comparison) -> tuple[str, str]:
    """Write the means of baseline and patched in their shared unit, without it.

    Geometric means where the change is a ratio, arithmetic ones else.
    """
    scale, _ = shared_unit(comparison)
    texts = []
    for summary in (comparison.baseline, comparison.patched):
        if summary is None:
            texts.append("-")
            continue
        ratio = comparison.scale is Scale.RATIO
        mean = summary.geometric_mean if ratio else summary.mean
        value = (summary.mean if mean is None else mean) / scale
        # of a single value no digits that its tool did not print
        texts.append(f"{value:.4g}" if summary.n == 1 else significant(value))
    return texts[0], texts[1]


def moved_in_words(comparison: Comparison) -> str:
    """Write both values with their unit: ``55.77 to 60.37 Mbit/s``.

    Empty where one of them is not known, or where the change names both itself.
    """
    if comparison.baseline is None or comparison.patched is None:
        return ""
    if comparison.question.planned.metric.kind is Kind.EXACT:
        return ""
    base, new = values_in_words(comparison)
    unit = shared_unit(comparison)[1]
    if base == new:
        return f"{base} {unit}".rstrip() + " in both"
    return f"{base} to {new} {unit}".rstrip()


def replication_in_words(comparison: Comparison) -> str:
    """Say how many runs there were, and what was counted."""
    base, new = comparison.n_baseline, comparison.n_patched
    runs = f"{count_of(base, 'run')} each" if base == new else f"{base} and {new} runs"
    if comparison.blocks:
        name = comparison.unit_of_analysis.split(" ")[0]
        return f"{runs} in {comparison.blocks} {name}s"
    return runs


def sentence_of(finding: Finding) -> str:
    """Write a finding in one sentence."""
    comparison = finding.comparison
    question = comparison.question
    quantity = question.planned.metric
    name = f"{question.planned.metric.name} on {question.workload}"
    if finding.named:
        name += f", {finding.named}"
    if question.problem:
        why = question.problem.removeprefix("not measured")
        return f"{name}: not measured{f' ({why})' if why else ''}."
    if comparison.change is None:
        cap = cap_of(comparison) if quantity.kind in outcomes.KINDS else ""
        return f"{name}: not assessable, {cap or _too_few(comparison)}."
    change = change_in_words(comparison) + _none_bound(finding)
    words = _WORDS.get(finding.role, _verdict_words)(finding, change)
    done = replication_in_words(comparison)
    counted = f"{done} are enough " in words  # by ``power_in_words``
    tail = "" if counted else f", {done}"
    return f"{name}: {words}{tail}{_tails(finding)}."


def _one_boot(finding: Finding) -> str:
    if ONE_BOOT_EACH not in finding.qualifiers or cap_of(finding.comparison):
        return ""
    added = _boots_added(finding.comparison)
    return f"; within one boot of each kernel, boot to boot not measured{added}"


_TAILS: Final = {
    "fragile": "; fragile: it rests on few units or depends on a few runs",
    RUNS_FAILED: "; runs failed on this device",
    SHARE_SUBSTITUTE: "; in place of the CPU share, which compares at equal rates only",
    SUBSTITUTE: "; in place of the rate, which is at its limit",
}
_DEMOTED: Final = "; not judged, since the rate is not shown equal: see the CPU cost"


def _tails(finding: Finding) -> str:
    tails = [words for word, words in _TAILS.items() if word in finding.qualifiers]
    demoted = finding.role is not Role.GUARD and UNEQUAL_RATE in finding.qualifiers
    return "".join([*tails, _one_boot(finding), _DEMOTED if demoted else ""])


def _none_bound(finding: Finding) -> str:
    """Say of a guard without any event how many runs may still have one."""
    comparison = finding.comparison
    quantity, new = comparison.question.planned.metric, comparison.patched
    counted = quantity.kind in {Kind.COUNT, Kind.PROPORTION}
    if finding.role is not Role.GUARD or not counted or new is None or new.high != 0:
        return ""
    bound = 100 * stats.none_in(new.n)
    unit = comparison.question.unit
    return (
        f" (with none in {new.n} {unit}s, up to {bound:.2g} % of {unit}s may have one)"
    )


def _too_few(comparison: Comparison) -> str:
    base, new = comparison.baseline, comparison.patched
    counts = f"{base.n if base else 0} and {new.n if new else 0} units"
    if base and new and base.n == new.n:
        counts = f"{count_of(base.n, comparison.unit_of_analysis.split(' ')[0])} each"
    if not (base and new and base.mean > 0):
        return counts
    words = (
        f"{counts}; {moved_in_words(comparison)}, the ratio of the means is "
        f"{significant(new.mean / base.mean, digits=3)}"
    )
    if comparison.rounded is None:
        return words + _lent_spread(comparison)
    ends = (comparison.rounded.low, comparison.rounded.high)
    low, high = (significant(end, digits=3) for end in ends)
    return f"{words}, by rounding between {low} and {high}" + _lent_spread(comparison)


def _lent_spread(comparison: Comparison) -> str:
    """Say what a spread that another study lends makes of single units."""
    borrowed = comparison.borrowed
    if borrowed is None:
        return ""
    if cap_of(comparison):
        word = "not judged"
    else:
        word = "suggestive at most" if borrowed.shows else "it shows no change"
    return (
        f"; with a spread borrowed from {_lender(comparison, borrowed)} the change is "
        f"{_borrowed_change(comparison, borrowed)}, {word}"
    )


def _boots_added(comparison: Comparison) -> str:
    """Say what remains of a change within one boot of each variant."""
    borrowed = comparison.borrowed
    if borrowed is None or not borrowed.boots:
        return ""
    word = "" if borrowed.shows else ": two boots of one kernel may differ as much"
    return (
        f" (with the spread of boots borrowed from {_lender(comparison, borrowed)} "
        f"{_borrowed_change(comparison, borrowed)}{word})"
    )


def _lender(comparison: Comparison, borrowed: Borrowed) -> str:
    """Name the study that lends: ``a/same (sd 0.2 % of 5 boots)``."""
    lent = borrowed.lent
    size = on_scale(comparison, borrowed.sd)
    apart = "" if lent.level != "run" else ", boot to boot not measured"
    return f"{lent.study} (sd {size} of {lent.groups} {lent.level}s{apart})"


def _borrowed_change(comparison: Comparison, borrowed: Borrowed) -> str:
    return change_in_words(replace(comparison, change=borrowed.change, effect=None))


def _verdict_words(finding: Finding, change: str) -> str:
    margin = finding.planned.margin.text
    if finding.verdict in {Verdict.BETTER, Verdict.WORSE}:
        if AT_LEAST in finding.qualifiers:
            change = _least_in_words(change)
        if finding.planned.metric.kind is Kind.PASSFAIL:
            change = f"{change} ({_passed_in_words(finding.comparison)})"
        return f"{finding.verdict} by {change}, {_size_words(finding)}"
    if finding.verdict is Verdict.EQUIVALENT:
        return f"no difference beyond the margin of {margin}: {change}"
    if finding.verdict is Verdict.SATURATED:
        reason = next(iter(finding.qualifiers))
        link = f"; {NOT_TESTABLE}" if NOT_TESTABLE in finding.qualifiers else ""
        return f"{reason}, so no change could show: {change}" + link
    if finding.verdict is Verdict.INCONCLUSIVE:
        return _inconclusive_words(finding, change)
    reason = next(iter(finding.qualifiers), "")
    if finding.planned.metric.sign == 0 and reason == NO_DIRECTION:
        return f"{change} (described only: neither direction is better)"
    return f"not assessable ({reason}): {change}"


def _inconclusive_words(finding: Finding, change: str) -> str:
    if LAYOUT_NOISE in finding.qualifiers:
        floor = [
            one.text
            for one in finding.comparison.caveats
            if one.code == "code-placement"
        ]
        why = floor[0] if floor else "the placebo build may change as much"
        return f"inconclusive, not distinguishable from code placement: {change}; {why}"
    if finding.planned.metric.kind is Kind.PASSFAIL:
        return f"inconclusive: {change}; {_passed_in_words(finding.comparison)}"
    return f"inconclusive: {change}; {power_in_words(finding)}"


def _passed_in_words(comparison: Comparison) -> str:
    """Write how many units had the outcome, each with its interval, and Fisher's p."""
    new, base = (
        _share_in_words(one) for one in (comparison.patched, comparison.baseline)
    )
    return f"{new} against {base}, Fisher's exact p {comparison.p_value or 0:.2g}"


def _share_in_words(one: Summary | None) -> str:
    """Write ``3 of 8 [14, 69 %]``; the interval is that of Wilson (1927)."""
    if one is None:
        return "none"
    count = round(one.mean * one.n)
    share = stats.wilson(count, one.n, 0.95)
    return f"{count} of {one.n} [{100 * share.low:.0f}, {100 * share.high:.0f} %]"


def _size_words(finding: Finding) -> str:
    margin = finding.planned.margin.text
    for qualifier, words in (
        ("material", f"more than the margin of {margin}"),
        ("at most small", f"real, but below the margin of {margin}"),
        ("size uncertain", f"not certain to exceed the margin of {margin}"),
    ):
        if qualifier in finding.qualifiers:
            return words
    return "its size was not judged"


def _control_words(finding: Finding, change: str) -> str:
    margin = finding.planned.margin.text
    small = "at most small" in finding.qualifiers
    if finding.verdict is Verdict.WORSE and small:
        return (
            f"control, no gain: {change} is a real loss and far below the margin "
            f"of {margin}"
            if _far_below(finding)
            else f"control, no gain: {change} is a real loss below the margin of "
            f"{margin}"
        )
    if finding.verdict is Verdict.BETTER and small:
        return f"control, a real gain below the margin of {margin}: {change}"
    if finding.verdict is Verdict.EQUIVALENT:
        return f"control, unchanged within the margin of {margin}: {change}"
    if finding.verdict in {Verdict.BETTER, Verdict.WORSE}:
        return f"control, but {_verdict_words(finding, change)}"
    return f"control, {_verdict_words(finding, change)}"


def _far_below(finding: Finding) -> bool:
    """Say whether the estimate is below half the margin."""
    effect = finding.comparison.effect
    if effect is None or finding.margin is None:
        return False
    return abs(effect.value) < finding.margin / 2


def _guard_words(finding: Finding, change: str) -> str:
    margin = finding.planned.margin.text
    if finding.guarded is Guarded.UNRESOLVED:
        if cap := cap_of(finding.comparison):
            return f"unresolved ({cap}): {change}"
        if LAYOUT_NOISE in finding.qualifiers:
            return f"unresolved ({LAYOUT_NOISE}): {change}"
        if ONE_BOOT_EACH in finding.qualifiers and finding.verdict is Verdict.WORSE:
            return f"unresolved: worse by {change}, and boots may differ as much"
        if UNEQUAL_RATE in finding.qualifiers:
            return (
                f"unresolved: {change}, but the rate is not shown to be equal, and no "
                "CPU per byte or packet was measured"
            )
        passfail = finding.planned.metric.kind is Kind.PASSFAIL
        more = (
            _passed_in_words(finding.comparison)
            if passfail
            else power_in_words(finding)
        )
        return f"unresolved: {change}, harm of {margin} is not excluded; {more}"
    return {
        Guarded.SAFE: f"safe: {change}, "
        + (f"harm of {margin}" if finding.margin is not None else "any harm")
        + " is excluded",
        Guarded.HARM: f"worse by {change}, less than the margin of {margin}",
        Guarded.BROKEN: f"worse by {change} ({moved_in_words(finding.comparison)}), "
        f"the accepted harm was {margin}",
    }.get(finding.guarded or Guarded.NOT_MEASURED, "not measured")


_WORDS: Final = {Role.GUARD: _guard_words, Role.CONTROL: _control_words}


def power_in_words(finding: Finding) -> str:
    """Say what the units at hand could have shown, and how many the margin needs."""
    comparison = finding.comparison
    effect = comparison.effect
    if effect is None or finding.margin is None:
        return "the margin cannot be expressed on this scale"
    paired = comparison.blocks > 0
    count = comparison.blocks or units_each(comparison)
    sd = effect.standard_error * math.sqrt(count if paired else count / 2)
    goal = goal_of(finding.planned, finding.role)
    alpha, power = error_rates(goal, _alpha(comparison), POWER)
    smallest = stats.detectable_change(
        sd, max(2, int(count)), paired=paired, power=power, alpha=alpha
    )
    needed = stats.needed_n(sd, finding.margin, paired=paired, power=power, alpha=alpha)
    shown = on_scale(comparison, smallest)
    return (
        f"{replication_in_words(comparison)} are enough to {_SHOWN[goal]} {shown} "
        f"({10 * POWER:.2g} times in 10); for the margin of "
        f"{finding.planned.margin.text} it takes {_needed_in_words(comparison, needed)}"
    )


_SHOWN: Final = {
    Goal.CHANGE: "show a change of",
    Goal.NO_HARM: "exclude harm of",
    Goal.SAME: "exclude a change of",
}


def _alpha(comparison: Comparison) -> float:
    """Level of the interval of the change."""
    change = comparison.change
    return 0.05 if change is None else round(1 - change.confidence, 12)


def _needed_in_words(comparison: Comparison, needed: int | None) -> str:
    name = comparison.unit_of_analysis.split(" ")[0]
    if needed is None:
        return f"more than 10000 {name}s"
    if not comparison.blocks:
        return f"about {needed} {name}s of each variant"
    base, new = comparison.n_baseline, comparison.n_patched
    if base == new:
        each = math.ceil(needed * base / comparison.blocks)
        return f"about {each} runs each in {needed} {name}s"
    runs = math.ceil(needed * (base + new) / comparison.blocks)
    return f"about {runs} runs in {needed} {name}s"


def on_scale(comparison: Comparison, value: float, *, digits: int = 3) -> str:
    """Write a size on the scale of the analysis, as a change is written."""
    if comparison.scale is Scale.RATIO:
        return f"{100 * math.expm1(min(value, 700.0)):.{digits}g} %"
    scale, unit = difference_unit(comparison)
    return f"{value / scale:.{digits}g} {unit}".rstrip()


_OPENING: Final = {
    Decision.ACCEPT: "Supported",
    Decision.SMALL: "Supported, but smaller than what was declared to matter",
    Decision.VETO: "Veto: it costs more than was accepted",
    Decision.NOT_YET: "Not yet decided",
    Decision.REJECT: "The claim is not supported",
    Decision.MIXED: "Mixed over devices",
}


def headline(
    decision: Decision,
    devices: Sequence[DeviceDecision],
    findings: Sequence[Finding],
    declared: Sequence[Planned],
) -> str:
    """One sentence: the decision, what decided it, and the primary changes."""
    primary = [one for one in findings if one.role is Role.PRIMARY]
    opening = _OPENING[decision]
    if decision is Decision.ACCEPT and all(claims_same(one) for one in primary):
        opening = "No change, as claimed"
    if decision is Decision.MIXED:
        each = ", ".join(f"{one.device} {one.decision}" for one in devices)
        opening = f"{opening} ({each})"
    shown = primary
    if decision is Decision.NOT_YET:
        open_ = [one for one in findings if one.role in DECIDING and is_open(one)]
        shown = [*primary, *(one for one in open_ if one not in primary)]
    if decision is Decision.VETO:
        broken = [one for one in findings if one.guarded is Guarded.BROKEN]
        others = [
            one
            for one in findings
            if one.role is Role.DIAGNOSTIC and one.planned in declared
        ]
        shown = [*broken, *primary, *others]
        if warned := kernel_warnings(findings):
            opening = f"{KERNEL_VETO}, {'; '.join(warned)}"
    names = {one.comparison.question.device for one in shown}
    parts = [
        (f"{one.comparison.question.device} " if len(names) > 1 else "")
        + one.sentence.rstrip(".")
        for one in shown
    ]
    parts += [f"yet {x.sentence.rstrip('.')}: {CONTRARY}" for x in contrary(findings)]
    where = f" on {names.pop()}" if len(names) == 1 else ""
    return f"{opening}{where}: {'; '.join(parts) or 'no primary metric measured'}."


def failed_sentence(one: Failures) -> str:
    """Say how many runs failed, and whether chance allows it."""
    new, base = (
        f"{side.failed} of {side.runs} ({100 * side.share.value:.0f} % "
        f"[{100 * side.share.low:.0f}, {100 * side.share.high:.0f}])"
        for side in (one.patched, one.baseline)
    )
    if one.broken:
        words = "more than chance allows"
    elif one.too_many:
        words = f"too many for the others to speak for all (over {_MOST_FAILED})"
    else:
        words = "not more than chance allows"
    return (
        f"failed runs: {new} of {one.variant} and {base} of the baseline, "
        f"p {one.p_value:.2g}; {words}."
    )


_MOST_FAILED: Final = f"{100 * failures.MOST_FAILED:g} %"
