"""Which margins the noise of a device lets be tested, over several studies."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from patchstudy.banks import Tested
from patchstudy.findings import Assessment
from patchstudy.metrics import Scale
from patchstudy.noise import Noise, Series
from patchstudy.report.table import Column, Note, Table
from patchstudy.sentences import difference_unit
from patchstudy.study import Role

_JUDGED: Final = frozenset({"primary", "guard"})


def testable(margin: Mapping[str, Any], bank: Sequence[Noise]) -> str:
    """Say whether a margin can be tested there; nothing where no noise is known.

    Parameters
    ----------
    margin
        ``study``, ``series``, ``scale``, ``text``, ``value`` (on the scale of the
        analysis) and its unit in words, ``units`` and ``paired`` of the study, and
        ``copy`` where the study has a copy of its baseline.
    """
    known = [
        one
        for one in bank
        if (one.series, one.scale) == (margin["series"], margin["scale"])
        and (one.study != margin["study"] or margin["copy"])
    ]
    if not known:
        return ""
    noise = min(known, key=lambda one: (one.study != margin["study"], one.half_width))
    if noise.paired is margin["paired"]:
        noise = noise.with_units(margin["units"])
    can = margin["value"] >= noise.least_margin
    answer = "can be tested" if can else "is not testable with this n"
    series, (half, least) = noise.series, sizes(noise, margin["unit"])
    return (
        f"{margin['study']}: {series.device} {series.metric} {series.workload}: "
        f"the margin of {margin['text']} {answer}: A/A noise is +-{half} with "
        f"{units_in_words(noise)} ({noise.study}), so {least} or more can be"
    )


def sizes(noise: Noise, unit: tuple[float, str]) -> tuple[str, str]:
    """Write the half width and the least margin; a difference in this unit."""
    both = (noise.half_width, noise.least_margin)
    if noise.scale is Scale.RATIO:
        first, second = (percent(math.expm1(one)) for one in both)
    else:
        size, name = unit
        first, second = (f"{one / size:.2g} {name}".rstrip() for one in both)
    return first, second


def units_in_words(noise: Noise) -> str:
    """Say how many units show so much: ``5 blocks``, ``12 units of each variant``."""
    return f"{noise.units:.3g} " + ("blocks" if noise.paired else "units each")


def percent(share: float) -> str:
    """Write a ratio with two digits: ``0.2 %``."""
    return f"{100 * share:.2g} %"


# ---- in the report of one study -----------------------------------------------------


def margins(assessment: Assessment) -> Iterator[Table | Note]:
    """Which margins can be tested, by what a build differs by from itself."""
    found, other = assessment.tested, assessment.study.noise
    if not found:
        if other is not None:
            words = f"{other.name} tells the noise of nothing that this study judges: "
            yield Note("caveat", words + "device, workload or metric is another.")
        return
    rows = tuple(
        (
            one.comparison.question.planned.metric.label,
            f"{one.comparison.question.workload} on {one.comparison.question.device}",
            one.noise.study,
            units_in_words(one.noise),
            *_widths(one),
            one.comparison.question.planned.margin.text,
            "yes" if one.can else "no",
        )
        for one in found
    )
    columns = (
        *(Column(name) for name in ("Metric", "Where", "A/A study")),
        *(Column(name, "right")
          for name in ("With", "A/A noise", "Least margin", "Margin")),
        Column("Can be tested"),
    )  # fmt: skip
    caption = (
        "What a build differs by from itself: half the A/A interval with as many units "
        "as this study has; twice that is the smallest margin that can be tested"
    )
    yield Table(columns, rows, caption)


def sentences(assessment: Assessment) -> Iterator[str]:
    """Say of each primary metric what a build differs by from itself."""
    for one in assessment.tested:
        question = one.comparison.question
        if question.role is not Role.PRIMARY:
            continue
        half, _ = sizes(one.noise, difference_unit(one.comparison))
        answer = "can" if one.can else "cannot"
        yield (
            f"a build differs from itself by +-{half} in "
            f"{question.planned.metric.name} on {question.workload}, "
            f"{question.device} ({one.noise.study}, "
            f"{units_in_words(one.noise)}), so a margin of "
            f"{question.planned.margin.text} {answer} be tested"
        )


def _widths(one: Tested) -> tuple[str, str]:
    half, least = sizes(one.noise, difference_unit(one.comparison))
    return f"+-{half}", least


# ---- over the reports of a folder ---------------------------------------------------


def aa_bank(reports: Mapping[str, Mapping[str, Any]]) -> tuple[Noise, ...]:
    """List the noise that the A/A studies among some reports saw, by device.

    Parameters
    ----------
    reports
        Study -> content of its ``report.json``.
    """
    found = [
        Noise(
            study=name,
            series=_series(one),
            scale=Scale.RATIO,
            half_width=width,
            sd=one["baseline"]["sd"] / one["baseline"]["mean"],
            units=float(one["blocks"]) or _each(one),
            paired=one["blocks"] > 0,
            alpha=1 - one["change"]["confidence"],
        )
        for name, report in reports.items()
        for one in _aa(report)
        if (width := _half_width(one)) is not None
    ]
    return tuple(
        sorted(
            found,
            key=lambda x: (x.series.device, x.series.metric, x.series.workload,
                           x.half_width, x.study),
        )
    )  # fmt: skip


def margins_tested(
    bank: tuple[Noise, ...], reports: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Say of the margins of the other studies whether they can be tested there."""
    for name, report in reports.items():
        for one in report["comparisons"]:
            series = _series(one)
            known = [x for x in bank if x.study != name and x.series == series]
            relative = one["margin"]["scale"] == "ratio" and one["role"] in _JUDGED
            if known and relative and one["change"] is not None:
                yield _sentence(name, one, known[0])


def _sentence(name: str, one: Mapping[str, Any], noise: Noise) -> str:
    if noise.paired is (one["blocks"] > 0):
        noise = noise.with_units(float(one["blocks"]) or _each(one))
    can = math.log1p(one["margin"]["value"]) >= noise.least_margin
    answer = "can be tested" if can else "cannot be tested with as many runs"
    return (
        f"{name} on {one['device']}: an A/A study ({noise.study}) shows noise of "
        f"+-{percent(math.expm1(noise.half_width))} in {one['metric']} on "
        f"{one['workload']} with {units_in_words(noise)}; a margin of "
        f"{one['margin']['text']} {answer}."
    )


def _series(one: Mapping[str, Any]) -> Series:
    return Series(
        device=one["device"],
        workload=one["workload"],
        metric=one["metric"],
        labels=tuple(sorted(one["labels"].items())),
        tool=one["tool"],
        place=one["place"],
    )


def _each(one: Mapping[str, Any]) -> float:
    counts = [one[side]["units"] for side in ("baseline", "patched")]
    return len(counts) / sum(1 / count for count in counts)


def _aa(report: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    copy, first = report["design"].get("base2"), report["design"]["patched"][0]
    compared = report["comparisons"]
    itself = any(
        one["role"] == "primary" and one.get("expect") == "same" for one in compared
    )
    for one in compared:
        same = (itself and one["variant"] == first) or one["variant"] == copy
        if same and one["role"] in _JUDGED:
            yield one


def _half_width(one: Mapping[str, Any]) -> float | None:
    """Half of the interval on logs; None where a ratio or an end is missing."""
    change = one["change"]
    if change is None or change["scale"] != "ratio" or not one["baseline"]["mean"]:
        return None
    if change["low"] is None or change["high"] is None or change["low"] <= -1:
        return None
    width = math.log1p(change["high"]) - math.log1p(change["low"])
    return width / 2
