"""What A/A studies say about the noise of a device, from the results of a folder.

An A/A study compares a build with itself: its primary metric has ``expect = "same"``,
or it names a copy of the baseline as ``base2``. What differs there is noise, so its
interval says which margins can be tested on that device with as many runs.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from patchstudy.compare import Comparison
from patchstudy.metrics import Scale
from patchstudy.records import Severity
from patchstudy.study import Design, Role

#: How many half-widths of an A/A interval a margin must span (STATISTICS 3.4).
TESTABLE: Final = 2.0
_JUDGED: Final = frozenset({"primary", "guard"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The noise of one metric on one device and workload, as one study saw it.

    Attributes
    ----------
    half_width
        Of the interval of the A/A change, as a ratio: 0.002 is 0.2 %.
    sd
        Standard deviation of the baseline's units over their mean.
    units
        Units of the baseline.
    """

    study: str
    device: str
    metric: str
    workload: str
    half_width: float
    sd: float
    units: int

    @property
    def least_margin(self) -> float:
        """Smallest margin that can be tested with so many runs, as a ratio."""
        return math.expm1(TESTABLE * math.log1p(self.half_width))


def of_study(
    name: str, compared: Sequence[Comparison], design: Design
) -> Iterator[Noise]:
    """Yield the noise that one study saw where it compared a build with itself.

    Comparisons that a doubt caps (variants that did not take turns) say nothing of it.
    """
    for one in compared:
        question = one.question
        claimed = question.role is Role.PRIMARY and question.planned.expect == "same"
        copy = design.base2 != "" and one.variant == design.base2
        judged = claimed or (copy and str(question.role) in _JUDGED)
        grave = {Severity.CAP, Severity.UNUSABLE}
        capped = any(caveat.severity in grave for caveat in one.caveats)
        if not judged or capped or one.scale is not Scale.RATIO:
            continue
        if one.effect is not None and one.baseline is not None:
            interval = one.effect.interval(1 - design.alpha)
            yield Noise(
                study=name,
                device=question.device,
                metric=question.planned.metric.name,
                workload=question.workload,
                half_width=math.expm1((interval.high - interval.low) / 2),
                sd=one.baseline.sd / one.baseline.mean,
                units=one.baseline.n,
            )


def testable(margin: Mapping[str, Any], bank: Sequence[Noise]) -> str:
    """Say whether a margin can be tested there; nothing where no noise is known.

    Parameters
    ----------
    margin
        ``study``, ``device``, ``metric``, ``workload``, ``text`` and ``value`` (a
        ratio), and ``copy`` where the study has a copy of its baseline.
    """
    place = tuple(margin[name] for name in ("device", "metric", "workload"))
    known = [
        one
        for one in bank
        if (one.device, one.metric, one.workload) == place
        and (one.study != margin["study"] or margin["copy"])
    ]
    if not known:
        return ""
    noise = min(known, key=lambda one: (one.study != margin["study"], one.half_width))
    can = margin["value"] >= noise.least_margin
    answer = "can be tested" if can else "is not testable with this n"
    return (
        f"{margin['study']}: {' '.join(place)}: "
        f"the margin of {margin['text']} {answer}: A/A noise is "
        f"+-{percent(noise.half_width)} there with {noise.units} units of the baseline "
        f"({noise.study}), so {percent(noise.least_margin)} or more can be"
    )


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
            device=one["device"],
            metric=one["metric"],
            workload=one["workload"],
            half_width=width,
            sd=one["baseline"]["sd"] / one["baseline"]["mean"],
            units=one["baseline"]["units"],
        )
        for name, report in reports.items()
        for one in _aa(report)
        if (width := _half_width(one)) is not None
    ]
    order = ("device", "metric", "workload", "half_width", "study")
    return tuple(sorted(found, key=lambda x: [getattr(x, name) for name in order]))


def margins_tested(
    bank: tuple[Noise, ...], reports: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Say of the margins of the other studies whether they can be tested there."""
    for name, report in reports.items():
        for one in report["comparisons"]:
            known = [
                noise
                for noise in bank
                if noise.study != name
                and (noise.device, noise.metric, noise.workload)
                == (one["device"], one["metric"], one["workload"])
            ]
            relative = one["margin"]["scale"] == "ratio" and one["role"] in _JUDGED
            if known and relative:
                yield _sentence(name, one, known[0])


def _sentence(name: str, one: Mapping[str, Any], noise: Noise) -> str:
    can = one["margin"]["value"] >= noise.least_margin
    answer = "can be tested" if can else "cannot be tested with as many runs"
    return (
        f"{name} on {one['device']}: an A/A study ({noise.study}) shows noise of "
        f"+-{percent(noise.half_width)} in {one['metric']} on {one['workload']}; a "
        f"margin of {one['margin']['text']} {answer}."
    )


def percent(share: float) -> str:
    """Write a ratio with two digits: ``0.2 %``."""
    return f"{100 * share:.2g} %"


def _aa(report: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    copy = report["design"].get("base2")
    for one in report["comparisons"]:
        same = one["role"] == "primary" and one.get("expect") == "same"
        if same or (copy and one["variant"] == copy and one["role"] in _JUDGED):
            yield one


def _half_width(one: Mapping[str, Any]) -> float | None:
    """Half of the interval on logs; None where a ratio or an end is missing."""
    change = one["change"]
    if change is None or change["scale"] != "ratio" or not one["baseline"]["mean"]:
        return None
    if change["low"] is None or change["high"] is None or change["low"] <= -1:
        return None
    width = math.log1p(change["high"]) - math.log1p(change["low"])
    return math.expm1(width / 2)
