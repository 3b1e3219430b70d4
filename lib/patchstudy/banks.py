"""From the study that another names for its noise to what that lends."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchstudy import checks, noise
from patchstudy.compare import (
    Comparison,
    compare,
    margin_on_scale,
    noise_shown,
    with_noise,
)
from patchstudy.noise import EMPTY, Bank, Noise
from patchstudy.records import Severity
from patchstudy.study import Design, Role, Study

#: Doubts for which an interval says nothing about noise.
_GRAVE = frozenset({Severity.CAP, Severity.UNUSABLE})
_JUDGED = frozenset({Role.PRIMARY, Role.GUARD, Role.CONTROL})


def bank_of(study: Study) -> Bank:
    """Return what the study that this one names says about noise; nothing if none."""
    if study.noise is None:
        return EMPTY
    other = study.noise
    material = checks.material(other)
    doubts = checks.check(material)
    compared = compare(material.units, material.asked, other.design, doubts)
    return Bank(
        noises=tuple(noises(other.name, compared, other.design)),
        lent=tuple(
            noise.spreads(
                other.name, material.runs, material.asked, other.design.baseline
            )
        ),
    )


def noises(
    name: str, compared: Sequence[Comparison], design: Design
) -> Iterator[Noise]:
    """Yield the noise that one study saw where it compared a build with itself.

    That is a primary metric of which no change is expected, with the guards beside it,
    or a second copy of the baseline. Comparisons that a doubt caps (variants that did
    not take turns) say nothing of it.
    """
    same = any(
        one.role is Role.PRIMARY and one.expect == "same" for one in design.metrics
    )
    for one in compared:
        copy = design.base2 != "" and one.variant == design.base2
        itself = same and one.variant == design.patched[0]
        if one.question.role not in _JUDGED or not (itself or copy):
            continue
        shown = noise_shown(one, design, study=name)
        if shown and not any(caveat.severity in _GRAVE for caveat in one.caveats):
            yield shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """A margin beside the noise of the device, with the units of the study.

    Attributes
    ----------
    margin
        On the scale of the analysis.
    """

    comparison: Comparison
    margin: float
    noise: Noise

    @property
    def can(self) -> bool:
        """Say whether the margin can be tested with so many units."""
        return self.margin >= self.noise.least_margin


def tested(
    study: Study, compared: Sequence[Comparison], bank: Bank
) -> Iterator[Tested]:
    """Hold the margins that decide against the noise, of a copy in the study first."""
    design = study.design
    for one, known in with_noise(compared, design, bank, study=study.name):
        judged = one.variant == design.patched[0] and one.question.role in _JUDGED
        margin = margin_on_scale(one)
        if judged and known and margin is not None:
            yield Tested(comparison=one, margin=margin, noise=known)
