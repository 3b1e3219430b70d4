"""A patched device beside a reference device that it is said to be equal to.

"The modem is now as fast as the dongle" is a claim of equality between two devices. It
is borne out by the test of equivalence alone (STATISTICS 3.5: both one-sided tests, for
a ratio on logs), against the margin of the metric on the patched device.
"""

from dataclasses import replace

import pandas as pd

from patchstudy.checks import Doubt
from patchstudy.compare import compare
from patchstudy.findings import Assessment, judge
from patchstudy.tables import UNIT_GRAIN, Question
from patchstudy.verdicts import Finding


def beside(
    finding: Finding, reference: str, assessment: Assessment
) -> tuple[Finding, str] | None:
    """Judge the patched units of a finding against those of a reference device.

    The reference stands for the baseline: its units of the same variant (the same
    kernel), else of the baseline. Blocks are dropped, since a boot of one device is no
    boot of another: Welch's interval is made. What is doubted of either device counts.
    Whether the devices took turns in time is not known here.

    Returns
    -------
    tuple of (Finding, str), or None
        The judged comparison, and the variant of the reference; None where the metric
        was not measured on the reference with this workload.
    """
    asked = finding.comparison.question
    other = _twin(asked, reference, assessment)
    if other is None:
        return None
    design, units = assessment.study.design, assessment.material.units
    own = units[units["question"] == asked.key]
    theirs = units[units["question"] == other.key]
    variant = finding.comparison.variant
    of = variant if variant in set(theirs["variant"]) else design.baseline
    rows = _two_arms(
        theirs[theirs["variant"] == of],
        own[own["variant"] == variant],
        (design.baseline, variant),
        asked.key,
    )
    alone = replace(design, patched=(variant,), placebo="", base2="")
    doubts = _doubts(assessment, asked, other)
    (found,) = compare(rows, [asked], alone, doubts)
    return judge(found, assessment.study), of


def _twin(asked: Question, device: str, assessment: Assessment) -> Question | None:
    """The same question, asked of the reference device."""
    found = [
        one
        for one in assessment.material.asked
        if (one.device, one.workload) == (device, asked.workload)
        and one.planned.metric.name == asked.planned.metric.name
        and not one.problem
    ]
    alike = [one for one in found if one.labels == asked.labels]
    return next(iter(alike or found), None)


def _two_arms(
    base: pd.DataFrame, new: pd.DataFrame, names: tuple[str, str], key: str
) -> pd.DataFrame:
    """Make one table of experimental units of two devices, without blocks.

    ``order`` counts within a device and says nothing about two: it is 0 everywhere.
    """
    arms = [
        rows.assign(variant=name, question=key, block="", order=0)
        for rows, name in zip((base, new), names, strict=True)
    ]
    table = pd.concat(arms, ignore_index=True)
    table.attrs["grain"] = UNIT_GRAIN
    return table


def _doubts(
    assessment: Assessment, asked: Question, other: Question
) -> tuple[Doubt, ...]:
    """Return what is doubted of either device."""
    own = [one for one in assessment.doubts if one.concerns(asked)]
    theirs = [one for one in assessment.doubts if one.concerns(other)]
    every = dict.fromkeys(one.caveat for one in (*own, *theirs))
    return tuple(Doubt(caveat=one) for one in every)
