"""``report.json``: the one source of every number that a report shows."""

import json
import math
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from typing import Any, Final

from patchstudy.checks import Doubt
from patchstudy.compare import Comparison, Summary
from patchstudy.findings import Assessment, Explanation, Finding
from patchstudy.stats import Estimate
from patchstudy.study import Design, Planned, Study

SCHEMA: Final = 1
#: Libraries whose version can change a number or a figure.
_LIBRARIES: Final = ("patchstudy", "numpy", "pandas", "scipy", "seaborn", "matplotlib")


def results(assessment: Assessment) -> dict[str, Any]:
    """Return the content of ``report.json`` as plain JSON values.

    With scale ``ratio`` a change is patched / baseline - 1 (0.059 is +5.9 %), with
    ``difference`` it is in the metric's unit (of a count: per packet, where packets are
    known). An unbounded end of an interval is null.
    """
    study = assessment.study
    return {
        "schema": SCHEMA,
        "study": study.name,
        "question": study.design.question,
        "setting": study.design.setting,
        "decision": str(assessment.decision),
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
        "mechanism": [_explanation(one) for one in assessment.explanations],
        "claims": [
            {"text": one.text, "metric": one.metric, "change": one.change}
            for one in study.design.claims
        ],
        "checks": [_check(one) for one in assessment.doubts],
        "design": _design(study.design),
        "provenance": _provenance(study),
    }


def to_bytes(content: Mapping[str, Any]) -> bytes:
    """Write the results as JSON, the same bytes for the same content."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode("utf-8", errors="backslashreplace")


def digest(content: Mapping[str, Any]) -> str:
    """Return the sha256 of the results, to tell whether two reports agree."""
    return sha256(to_bytes(content)).hexdigest()


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
        "margin": _margin(planned),
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
        "p_value": one.companion.p_value,
        "wins": one.companion.wins,
        "pairs": one.companion.pairs,
    }


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


def _explanation(one: Explanation) -> dict[str, Any]:
    return {
        "device": one.evidence.device,
        "workload": one.evidence.workload,
        "symbol": one.evidence.symbol,
        "shares": {name: list(x) for name, x in one.evidence.shares.items()},
        "expect": one.expect,
        "sentence": one.sentence,
        "files": list(one.evidence.paths),
    }


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


def _design(design: Design) -> dict[str, Any]:
    return {
        "sha256": design.digest,
        "baseline": design.baseline,
        "patched": list(design.patched),
        "unit": design.unit,
        "block": design.block,
        "alpha": design.alpha,
        "treatment": list(design.treatment),
        "not_measured": list(design.not_measured),
        "devices": {name: dict(facts) for name, facts in design.devices.items()},
    }


def _provenance(study: Study) -> dict[str, Any]:
    return {
        "command": f"patchstudy report --study {study.name}",
        "inputs_sha256": inputs_digest(study.files),
        "files": dict(study.files),
        "facts": {
            f"{one.device}/{one.boot}/{one.name}": one.sha256 for one in study.facts
        },
        "not_used": [
            {"path": one.path, "reason": one.reason, "sha256": one.digest}
            for one in study.leftovers
        ],
        "versions": {name: version(name) for name in _LIBRARIES},
        "tools": _tools(study.runs),
    }


def _tools(runs: Sequence[Any]) -> dict[str, list[str]]:
    """Versions of the measuring tools, as their files say."""
    found: dict[str, set[str]] = {}
    for run in runs:
        for source in run.sources:
            if source.capture.tool_version:
                versions = found.setdefault(source.capture.tool, set())
                versions.add(source.capture.tool_version)
    return {tool: sorted(versions) for tool, versions in sorted(found.items())}
