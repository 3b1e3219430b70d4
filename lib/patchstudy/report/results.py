"""``report.json``: the one source of every number that a report shows."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from typing import Any, Final

from patchstudy import claims
from patchstudy.checks import Doubt
from patchstudy.claims import Check, Checked
from patchstudy.companions import Counted, Spread, Trimmed
from patchstudy.compare import Comparison, Summary
from patchstudy.failures import Failures, Tally
from patchstudy.findings import Assessment
from patchstudy.metrics import Scale
from patchstudy.noise import Borrowed
from patchstudy.patchfile import Patch
from patchstudy.report import answer, circumstances, evidence, ledger
from patchstudy.stats import Bounds, Estimate
from patchstudy.study import Design, Planned, Run, Study
from patchstudy.together import Together, sentence, together
from patchstudy.variances import Components, components
from patchstudy.verdicts import Finding

SCHEMA: Final = 1
#: Libraries whose version can change a number or a figure.
_LIBRARIES: Final = ("patchstudy", "numpy", "pandas", "scipy", "seaborn", "matplotlib")


@lru_cache(maxsize=1)
def results(assessment: Assessment) -> dict[str, Any]:
    """Return the content of ``report.json`` as plain JSON values; not to be changed.

    With scale ``ratio`` a change is patched / baseline - 1 (0.059 is +5.9 %), with
    ``difference`` it is in the metric's unit (of a count: per packet, where packets are
    known). An unbounded end of an interval is null.
    """
    study = assessment.study
    return {
        "schema": SCHEMA,
        "study": study.name,
        "title": study.design.title,
        "question": study.design.question,
        "setting": study.design.setting,
        "patch": _patch(study.patch),
        "decision": str(assessment.decision),
        "decision_in_words": answer.decision_in_words(assessment),
        "headline": answer.headline(assessment),
        "sentence": assessment.sentence,
        "devices": [
            {
                "device": one.device,
                "variant": one.variant,
                "decision": str(one.decision),
                "reasons": list(one.reasons),
            }
            for one in assessment.devices
        ],
        "comparisons": [_comparison(one) for one in assessment.findings],
        "runs": [asdict(one) for one in ledger.lines(assessment)],
        "measured": _measured(study),
        "facts": [_fact(one) for one in circumstances.facts(study)],
        "limits": [
            {**asdict(one), "by": list(one.by)}
            for one in circumstances.limits(assessment)
        ],
        "failed_runs": [_failures(one) for one in assessment.failures],
        "mechanism": [evidence.of_explanation(x) for x in assessment.explanations],
        "explained": [evidence.of_explained(x) for x in assessment.explained],
        "profile": evidence.of_profiles(assessment),
        "reported": evidence.of_reports(assessment),
        "flames": evidence.of_flames(assessment),
        **evidence.of_calls(assessment),
        "counters": [evidence.of_counted(one) for one in assessment.counted],
        "claims": checked_claims(assessment),
        "checks": [_check(one) for one in assessment.doubts],
        "devices_together": [
            _together(one) for one in together(assessment.findings, study.design)
        ],
        "noise": _noise(assessment),
        "variance_components": [_parts(one) for one in components(assessment.material)],
        "design": {**_design(study.design), "planned": _planned(study)},
        "provenance": _provenance(study),
    }


def checked_claims(assessment: Assessment) -> list[dict[str, Any]]:
    """Return the claims of the mail with what became of each."""
    return [_claim(one) for one in claims.check(assessment)]


def _measured(study: Study) -> dict[str, str | None]:
    """When the first and the last measured run began, as far as files tell."""
    began = sorted(one.started_at for one in study.runs if one.started_at)
    return {"first": began[0], "last": began[-1]} if began else {
        "first": None, "last": None,
    }  # fmt: skip


def _fact(one: circumstances.Fact) -> dict[str, Any]:
    return {
        "name": one.name,
        "values_by_variant": [list(values) for values in one.values_by_variant],
        "meaning": one.meaning,
    }


def _patch(patch: Patch | None) -> dict[str, Any] | None:
    """The patch as mailed, without the people whom it names."""
    if patch is None:
        return None
    return {
        "subject": patch.subject,
        "tree": patch.tree,
        "version": patch.version,
        "number": patch.number,
        "of": patch.of,
        "driver": patch.driver,
        "subsystem": patch.subsystem,
        "files": [one.path for one in patch.files],
        "links": list(patch.links),
        "base_commit": patch.base_commit,
    }


@lru_cache(maxsize=1)
def written(assessment: Assessment) -> bytes:
    """Write the results as JSON: the bytes of ``report.json``."""
    content = results(assessment)
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode("utf-8", errors="backslashreplace")


def digest(assessment: Assessment) -> str:
    """Return the sha256 of ``report.json``, to tell whether two reports agree."""
    return sha256(written(assessment)).hexdigest()


def inputs_digest(files: Mapping[str, str]) -> str:
    """Return one sha256 for many files: of the lines that ``sha256sum`` prints."""
    lines = "".join(f"{mark}  {path}\n" for path, mark in sorted(files.items()))
    return sha256(lines.encode("utf-8", errors="surrogateescape")).hexdigest()


def _comparison(finding: Finding) -> dict[str, Any]:
    one = finding.comparison
    question, planned = one.question, one.question.planned
    return {
        "metric": planned.metric.name,
        "unit": planned.metric.unit,
        "role": str(finding.role),
        "device": question.device,
        "workload": question.workload,
        "variant": one.variant,
        "labels": dict(question.labels),
        "tool": question.tool,
        "place": question.place,
        "n_baseline": one.n_baseline,
        "n_patched": one.n_patched,
        "blocks": one.blocks,
        "unit_of_analysis": one.unit_of_analysis,
        "baseline": _summary(one.baseline),
        "patched": _summary(one.patched),
        "change": _change(one),
        "p_value": one.p_value,
        "p_adjusted": one.p_adjusted,
        "companion": _companion(one),
        "ratio_of_means": one.ratio_of_means and _estimate(one.ratio_of_means),
        "spread": one.spread and _spread(one.spread),
        "without_outliers": one.without_outliers and _trimmed(one.without_outliers),
        "counted": one.counted and _counted(one.counted),
        "rounded": one.rounded and _bounds(one.rounded),
        "borrowed": one.borrowed and _borrowed(one.borrowed),
        "margin": _margin(planned),
        "layout_noise": finding.layout_noise and _size(finding.layout_noise, one.scale),
        "expect": planned.expect,
        "verdict": str(finding.verdict),
        "guard": None if finding.guarded is None else str(finding.guarded),
        "qualifiers": list(finding.qualifiers),
        "sentence": finding.sentence,
        "method": one.method,
        "problem": question.problem,
        "caveats": [
            {"code": caveat.code, "text": caveat.text} for caveat in one.caveats
        ],
    }


def _summary(summary: Summary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    return {
        "units": summary.n,
        "mean": summary.mean,
        "geometric_mean": summary.geometric_mean,
        "median": summary.median,
        "sd": summary.sd,
        "low": summary.low,
        "high": summary.high,
    }


def _borrowed(one: Borrowed) -> dict[str, Any]:
    """With the standard deviation as a change is written."""
    return {
        **_estimate(one.change),
        "method": one.change.method,
        "study": one.lent.study,
        "level": one.lent.level,
        "groups": one.lent.groups,
        "runs": one.lent.runs,
        "sd": _size(one.sd, one.lent.scale),
        "boots_added": one.boots,
    }


def _size(value: float, scale: Scale) -> float | None:
    """Bring a size from logs to a ratio less 1; null where that has no end."""
    if scale is Scale.DIFFERENCE:
        return _finite(value)
    return math.expm1(value) if value < 700 else None


def _noise(assessment: Assessment) -> dict[str, Any]:
    """What another study says of the noise; widths as changes are written."""
    other = assessment.study.noise
    return {
        "study": other and other.name,
        "study_sha256": other and other.design.digest,
        "margins": [
            {
                "metric": x.noise.series.metric,
                "device": x.noise.series.device,
                "workload": x.noise.series.workload,
                "scale": str(x.noise.scale),
                "from": x.noise.study,
                "units": x.noise.units,
                "paired": x.noise.paired,
                "half_width": _size(x.noise.half_width, x.noise.scale),
                "least_margin": _size(x.noise.least_margin, x.noise.scale),
                "margin": _size(x.margin, x.noise.scale),
                "testable": x.can,
            }
            for x in assessment.tested
        ],
    }


def _counted(one: Counted) -> dict[str, Any]:
    return {
        "change": one.change and _estimate(one.change),
        "p_value": one.p_value,
        "dispersion": list(one.dispersion),
        "why_not": one.why_not,
    }


def _change(one: Comparison) -> dict[str, Any] | None:
    if one.change is None:
        return None
    return {**_estimate(one.change), "scale": str(one.scale)}


def _companion(one: Comparison) -> dict[str, Any] | None:
    if one.companion is None:
        return None
    return {
        **_estimate(one.companion.estimate),
        "method": one.companion.estimate.method,
        "test": one.companion.test,
        "p_value": one.companion.p_value,
        "least_p": one.companion.least_p,
        "wins": one.companion.wins,
        "pairs": one.companion.pairs,
    }


def _spread(spread: Spread) -> dict[str, float]:
    return {"ratio": spread.ratio, "p_value": spread.p_value}


def _trimmed(trimmed: Trimmed) -> dict[str, Any]:
    return {**_estimate(trimmed.change), "left_out": list(trimmed.left_out)}


def _failures(one: Failures) -> dict[str, Any]:
    return {
        "device": one.device,
        "variant": one.variant,
        "baseline": _tally(one.baseline),
        "patched": _tally(one.patched),
        "p_value": one.p_value,
        "broken": one.broken,
    }


def _tally(one: Tally) -> dict[str, Any]:
    return {"failed": one.failed, "runs": one.runs, **_estimate(one.share)}


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        "value": estimate.value,
        "low": _finite(estimate.low),
        "high": _finite(estimate.high),
        "confidence": estimate.confidence,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _margin(planned: Planned) -> dict[str, Any]:
    return {
        "text": planned.margin.text,
        "value": planned.margin.value,
        "scale": str(planned.margin.scale),
        "declared": planned.margin.declared,
    }


def _claim(one: Checked) -> dict[str, Any]:
    """Return a claim; bounds of a percentage are fractions, of a factor ratios."""
    claim = one.claim
    sides = {"baseline": claim.baseline, "patched": claim.patched}
    ends = claim.stated.ends or ()
    return {
        "text": claim.text,
        "metric": claim.metric,
        "device": claim.device,
        "workload": claim.workload,
        "variant": claim.variant,
        "reference": claim.reference,
        "change": claim.change,
        "kind": str(claim.stated.kind),
        "decimals": claim.stated.decimals,
        "about": claim.stated.about,
        "of": claim.of,
        "stated": claim.stated.bounds and _bounds(claim.stated.bounds),
        "values": [_bounds(x.bounds) for x in ends],
        "inputs": {
            name: x and {"text": x.text, "unit": x.unit, **_bounds(x.bounds)}
            for name, x in sides.items()
        },
        "from_mail": _claim_check(one.mail),
        "from_data": [_claim_check(x) for x in one.data],
    }


def _claim_check(one: Check) -> dict[str, Any]:
    return {
        "device": one.device,
        "workload": one.workload,
        "outcome": str(one.outcome),
        "found": one.found and _bounds(one.found),
        "why": one.why,
    }


def _bounds(one: Bounds) -> dict[str, float | None]:
    return {"value": one.value, "low": _finite(one.low), "high": _finite(one.high)}


def _check(doubt: Doubt) -> dict[str, str]:
    return {
        "code": doubt.caveat.code,
        "severity": str(doubt.caveat.severity),
        "text": doubt.caveat.text,
        "todo": doubt.caveat.todo,
        "device": doubt.device,
        "workload": doubt.workload,
        "question": doubt.question,
    }


def _together(one: Together) -> dict[str, Any]:
    """Effects and tau2 are on the scale of the analysis: logs for a ratio."""
    first = one.findings[0].comparison
    return {
        "metric": first.question.planned.metric.name,
        "workload": first.question.workload,
        "variant": first.variant,
        "counts": one.counts,
        "compared": [x.comparison.question.device for x in one.used],
        "left_out": one.left_out,
        "scale": str(one.scale),
        "machines": one.machines,
        "same_sign": one.same_sign,
        "sign_p": one.sign_p,
        "q": one.q,
        "q_p": one.q_p,
        "i2": one.i2,
        "tau2": one.tau2,
        "pooled": one.pooled and _estimate(one.pooled),
        "sentence": sentence(one),
    }


def _parts(one: Components) -> dict[str, Any]:
    """Standard deviations; of logs with scale ``ratio``."""
    return {
        "metric": one.question.planned.metric.name,
        "device": one.question.device,
        "workload": one.question.workload,
        "variant": one.variant,
        "scale": str(one.scale),
        "level": one.level,
        "groups": one.groups,
        "runs": one.runs,
        "sd_between": one.between,
        "sd_within": one.within,
        "clamped": one.clamped,
        "best_runs": one.best,
        "gain_at_most": one.gain,
    }


def _planned(study: Study) -> dict[str, Any] | None:
    """Runs of each variant as planned and as measured, where a plan was stored."""
    if study.plan is None:
        return None
    measured: dict[str, dict[str, list[str]]] = {}
    for run in study.runs:
        if run.measuring:
            cells = measured.setdefault(run.device, {})
            cells.setdefault(run.workload, []).append(run.variant)
    return {
        "sha256": study.plan.digest,
        "study_sha256": study.plan.study_sha256,
        "pilot": study.plan.pilot,
        "runs": {one: Counter(x) for one, x in study.plan.orders.items()},
        "measured": {
            device: {workload: Counter(x) for workload, x in cells.items()}
            for device, cells in measured.items()
        },
    }


def _design(design: Design) -> dict[str, Any]:
    return {
        "sha256": design.digest,
        "baseline": design.baseline,
        "patched": list(design.patched),
        "placebo": design.placebo,
        "base2": design.base2,
        "unit": design.unit,
        "block": design.block,
        "alpha": design.alpha,
        "confidence": 1 - design.alpha,
        "treatment": list(design.treatment),
        "not_measured": list(design.not_measured),
        "devices": {name: dict(facts) for name, facts in design.devices.items()},
    }


def _provenance(study: Study) -> dict[str, Any]:
    return {
        "command": f"patchstudy report --study {study.name}",
        "inputs_sha256": inputs_digest(study.files),
        "inputs": len(study.files),
        "files": dict(study.files),
        "published": _published(study.runs),
        "facts": {
            f"{one.device}/{one.boot}/{one.name}": one.sha256 for one in study.facts
        },
        "not_used": [
            {"path": one.path, "reason": one.reason, "sha256": one.digest}
            for one in study.leftovers
        ],
        "versions": {name: version(name) for name in _LIBRARIES},
        "tools": _tools(study.runs),
        "hidden_names": study.hidden,
    }


def _published(runs: Sequence[Run]) -> dict[str, list[str]]:
    """Device -> where its values were published; nothing for what was measured here."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        if run.published:
            found.setdefault(run.device, {}).update(dict.fromkeys(run.published))
    return {device: list(told) for device, told in sorted(found.items())}


def _tools(runs: Sequence[Any]) -> dict[str, list[str]]:
    """Versions of the measuring tools, as their files say."""
    found: dict[str, set[str]] = {}
    for run in runs:
        for source in run.sources:
            if source.capture.tool_version:
                versions = found.setdefault(source.capture.tool, set())
                versions.add(source.capture.tool_version)
    return {tool: sorted(versions) for tool, versions in sorted(found.items())}
