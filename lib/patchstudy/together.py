"""One metric over several devices: what each says, and whether they agree.

Devices are no sample of devices. Nothing here is a verdict, and no percentages are
averaged: what is pooled are differences on the scale of the analysis.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import optimize, special

from patchstudy.metrics import Scale
from patchstudy.stats import Estimate
from patchstudy.study import Design, Role, is_published
from patchstudy.verdicts import Finding, Verdict

#: Machines from which a pooled change is told (STATISTICS 3.15: devices).
ENOUGH_DEVICES: Final = 5
_DECLARED: Final = frozenset({Role.PRIMARY, Role.GUARD})
_Key = tuple[str, str, str, str, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """The findings of one metric, workload and variant on two devices or more.

    Attributes
    ----------
    counts
        Verdict -> number of devices.
    used, left_out
        Findings that are compared with each other, and device -> why others are not.
    machines
        Number of machines among the used: two settings of one are one witness.
    same_sign, sign_p
        Whether all used changes point in one direction, and how often chance alone
        makes so many machines agree (two-sided sign test). None where a change is
        exactly zero or none is beside it; the latter also where there is one machine.
    q, q_p, i2, tau2
        Heterogeneity (Cochran 1954): Q with its p, the share of it that is not noise,
        and the variance between devices (Paule and Mandel 1982), on the scale of the
        analysis. None with fewer than two used, or without spread.
    pooled
        Mean over devices on the scale of the analysis with its 95 % interval (random
        effects, Hartung and Knapp 2001); None below ``ENOUGH_DEVICES`` machines.
    """

    findings: tuple[Finding, ...]
    counts: dict[str, int]
    used: tuple[Finding, ...]
    left_out: dict[str, str]
    machines: int
    same_sign: bool | None
    sign_p: float | None
    q: float | None
    q_p: float | None
    i2: float | None
    tau2: float | None
    pooled: Estimate | None

    @property
    def scale(self) -> Scale:
        """Scale of the used changes."""
        return self.used[0].comparison.scale if self.used else Scale.DIFFERENCE


def together(findings: Iterable[Finding], design: Design) -> tuple[Together, ...]:
    """Put the declared findings of one metric on several devices side by side.

    Published values never stand together with measured ones.
    """
    cells: dict[_Key, list[Finding]] = {}
    for one in findings:
        if one.role in _DECLARED:
            question = one.comparison.question
            labels = ",".join("=".join(pair) for pair in question.labels)
            name = f"{question.planned.metric.name} {labels}"
            kind = is_published(question.device)
            role = str(one.role)
            key = (name, question.workload, one.comparison.variant, role, kind)
            cells.setdefault(key, []).append(one)
    return tuple(_together(ones, design) for ones in cells.values() if len(ones) > 1)


def sentence(one: Together) -> str:
    """Say what the devices say together, in one sentence."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in one.counts.items())
    first = one.findings[0].comparison.question
    text = f"{first.planned.metric.name} on {first.workload}: {counts}"
    if one.same_sign is not None:
        text += f"; {_signs(one)}"
    if one.i2 is not None:
        text += f"; {100 * one.i2:.0f} % of their differences is more than noise"
    return text + "."


def _signs(one: Together) -> str:
    if not one.same_sign:
        return "the changes do not all point the same way"
    words = f"all {len(one.used)} changes point the same way"
    if one.sign_p is None:
        return f"{words}, in settings of one machine: one witness, not {len(one.used)}"
    few = one.machines < len(one.used)
    count = f", on {one.machines} machines" if few else ""
    return f"{words}{count}, which chance alone does with p {one.sign_p:.3f}"


def heterogeneity(
    values: Sequence[float], errors: Sequence[float]
) -> tuple[float, float, float, float]:
    """Return Q, its p, I squared and tau squared of effects with standard errors."""
    effects, variances = np.asarray(values), np.asarray(errors) ** 2
    k = len(effects)
    q = _q(0.0, effects, variances)
    p_value = float(special.chdtrc(k - 1, q))
    return (
        q,
        p_value,
        max(0.0, 1 - (k - 1) / q) if q > 0 else 0.0,
        _tau2(effects, variances),
    )


def pool(values: Sequence[float], errors: Sequence[float], tau2: float) -> Estimate:
    """Return the random-effects mean with its 95 % interval.

    The variance is that of Hartung and Knapp, never below the plain one, so that
    effects that agree by chance do not give a narrower interval than their own errors.
    """
    effects = np.asarray(values)
    weights = 1 / (np.asarray(errors) ** 2 + tau2)
    mean = float(weights @ effects / weights.sum())
    scatter = float(weights @ (effects - mean) ** 2) / (len(effects) - 1)
    error = math.sqrt(max(1.0, scatter) / float(weights.sum()))
    reach = float(special.stdtrit(len(effects) - 1, 0.975)) * error
    return Estimate(
        value=mean,
        low=mean - reach,
        high=mean + reach,
        confidence=0.95,
        method="random effects over devices, Hartung and Knapp",
    )


# ---- parts --------------------------------------------------------------------------


def _together(findings: Sequence[Finding], design: Design) -> Together:
    left_out = {x.comparison.question.device: why for x in findings if (why := _odd(x))}
    fit = [x for x in findings if not _odd(x)]
    scales = Counter(x.comparison.scale for x in fit)
    scale = scales.most_common(1)[0][0] if fit else Scale.RATIO
    used = [x for x in fit if x.comparison.scale is scale]
    left_out |= {
        x.comparison.question.device: "compared on another scale"
        for x in fit
        if x.comparison.scale is not scale
    }
    effects = [x.comparison.effect for x in used if x.comparison.effect is not None]
    values = [one.value for one in effects]
    errors = [one.standard_error for one in effects]
    several = len(values) > 1
    told = several and min(errors) > 0 and any(values)
    found = heterogeneity(values, errors) if told else (None,) * 4
    directed = several and all(values)
    machines = len({design.machine(x.comparison.question.device) for x in used})
    enough = told and machines >= ENOUGH_DEVICES
    return Together(
        findings=tuple(findings),
        counts=dict(Counter(str(x.verdict) for x in findings)),
        used=tuple(used),
        left_out=left_out,
        machines=machines,
        same_sign=min(values) > 0 or max(values) < 0 if directed else None,
        sign_p=2 * 0.5**machines if directed and machines > 1 else None,
        q=found[0],
        q_p=found[1],
        i2=found[2],
        tau2=found[3],
        pooled=pool(values, errors, found[3] or 0.0) if enough else None,
    )


def _odd(one: Finding) -> str:
    """Say why a finding cannot be compared with the others; empty where it can."""
    if one.comparison.effect is None:
        return one.comparison.question.problem or "too few units"
    if one.verdict in {Verdict.SATURATED, Verdict.NOT_ASSESSABLE}:
        return ", ".join([str(one.verdict), *one.qualifiers[:1]])
    if one.comparison.scale is not one.planned.metric.scale:
        return "a value is zero: no ratio"
    return ""


def _q(tau2: float, effects: np.ndarray, variances: np.ndarray) -> float:
    weights = 1 / (variances + tau2)
    mean = weights @ effects / weights.sum()
    return float(weights @ (effects - mean) ** 2)


def _tau2(effects: np.ndarray, variances: np.ndarray) -> float:
    """Variance between devices at which Q is what it is expected to be."""
    wanted = len(effects) - 1

    def excess(tau2: float) -> float:
        return _q(tau2, effects, variances) - wanted

    if excess(0.0) <= 0:
        return 0.0
    high = float(effects.var(ddof=1)) + float(variances.max())
    while excess(high) > 0:
        high *= 2
    return float(optimize.brentq(excess, 0.0, high, xtol=1e-15, rtol=1e-12))
