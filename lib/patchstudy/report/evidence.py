"""The evidence of the mechanism as plain values, for ``report.json``."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pandas as pd

from patchstudy import calls, profiles, reported
from patchstudy.counters import Counted
from patchstudy.findings import Assessment
from patchstudy.mechanism import Explanation
from patchstudy.stats import Estimate
from patchstudy.weighing import Explained

#: Symbols of each profile that report.json lists, beside those that the study names.
_TOP: Final = 40


def of_explanation(one: Explanation) -> dict[str, Any]:
    """Values of the profile runs about one named symbol or counter."""
    shares = one.metric.startswith("profile_share:")
    return {
        "metric": one.metric,
        "device": one.device,
        "workload": one.workload,
        "symbol": one.symbol,
        "unit": one.unit,
        "shares": _lists(one.values) if shares else {},
        "values": _lists(one.values),
        "per_packet": _lists(one.per_packet),
        "change": _estimate(one.change),
        "expect": one.expect,
        "holds": str(one.holds),
        "sentence": one.sentence,
        "files": list(one.paths),
    }


def of_explained(one: Explained) -> dict[str, Any]:
    """Predicted beside found; ends of an interval are null where there is none."""
    return {
        "device": one.device,
        "workload": one.workload,
        "variant": one.variant,
        "response": one.response,
        "limit": one.limit,
        "basis": one.basis,
        "symbols": list(one.symbols),
        "removed": _estimate(one.removed),
        "predicted": _estimate(one.predicted),
        "found": _estimate(one.found),
        "part": _estimate(one.part),
        "answer": str(one.word),
        "reasons": list(one.reasons),
        "assumption": one.assumption,
        "slowed": dict(one.slowed),
        "sentence": one.sentence,
    }


def of_profiles(assessment: Assessment) -> list[dict[str, Any]]:
    """The symbols that tell most, as ``profiles.difference`` has them."""
    design = assessment.study.design
    named = [one.metric.name.partition(":")[2] for one in design.metrics]
    return _records(profiles.telling(assessment.profiled, named, _TOP))


def of_reports(assessment: Assessment) -> list[dict[str, Any]]:
    """Self shares without stacks, as ``reported.difference`` has them."""
    design = assessment.study.design
    named = [one.metric.name.partition(":")[2] for one in design.metrics]
    return _records(reported.telling(assessment.reported, named, _TOP))


def of_calls(assessment: Assessment) -> dict[str, Any]:
    """Calls, who makes them and what they cost, as the tables of ``calls`` have it."""
    study, found = assessment.study, assessment.call_costs
    clocks = calls.clocks(study)
    return {
        "calls": _records(found),
        "callers": _records(calls.by_task(assessment.called, study)),
        "call_costs": _records(assessment.durations),
        "clocks": clocks,
        "tracers": list(calls.tracer_notes(found, clocks)),
    }


def of_flames(assessment: Assessment) -> list[dict[str, Any]]:
    """The frames of the flame graphs, as ``flames.flames`` has them."""
    return _records(assessment.flamed.drop(columns=["start", "width"]))


def of_counted(one: Counted) -> dict[str, Any]:
    """All counters of a device and workload that changed beyond noise."""
    return {
        "device": one.device,
        "workload": one.workload,
        "variant": one.variant,
        "looked_at": one.looked_at,
        "differ": len(one.changed),
        "units": list(one.units),
        "blocks": one.blocks,
        "changed": [
            {
                "counter": x.name,
                "labels": dict(x.labels),
                "tool": x.tool,
                "place": x.place,
                "same": list(x.same),
                "baseline": x.baseline,
                "patched": x.patched,
                "per": x.per,
                "rate_baseline": x.rate_baseline,
                "rate_patched": x.rate_patched,
                "change": None if x.ratio is None else x.ratio - 1,
                "ratio": x.ratio,
                "p_value": x.p_value,
                "p_adjusted": x.p_adjusted,
                "costs": x.costs,
            }
            for x in one.changed
        ],
    }


def _lists(values: Mapping[str, Iterable[float]]) -> dict[str, list[float]]:
    return {name: list(x) for name, x in values.items()}


def _estimate(one: Estimate | None) -> dict[str, Any] | None:
    if one is None:
        return None
    low, high = (x if math.isfinite(x) else None for x in (one.low, one.high))
    return {
        "value": one.value,
        "low": low,
        "high": high,
        "confidence": one.confidence,
        "method": one.method,
    }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(key): _plain(value) for key, value in row.items()}
        for row in table.to_dict("records")
    ]


def _plain(value: Any) -> Any:  # noqa: ANN401 - any cell of a table
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | bool | int) else str(value)
