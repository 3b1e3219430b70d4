"""One capture of a file that holds several results, which are never added up."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from patchstudy.records import Capture, Caveat, Measurement, Severity

_Value = TypeVar("_Value")


def together(captures: Sequence[Capture]) -> Capture:
    """Return one capture of all results of a file, in its order.

    Of several good results each number carries the label ``document`` ("1", "2", ...,
    counted over all results of the file), and of the workload and the facts only what
    they agree in is kept. A failed result among good ones becomes a caveat and gives no
    number. Where all failed the first error stands.
    """
    if len(captures) == 1:
        return captures[0]
    numbered = [(str(at), one) for at, one in enumerate(captures, start=1)]
    good = [(at, one) for at, one in numbered if one.error is None]
    caveats = [_failed(at, one) for at, one in numbered if one.error] if good else []
    kept = good or numbered
    first = kept[0][1]
    if len(kept) == 1:
        return replace(first, caveats=(*first.caveats, *caveats))
    return replace(
        first,
        workload={
            **agreed([one.workload for _at, one in kept]),
            "documents": len(captures),
        },
        facts=agreed([one.facts for _at, one in kept]),
        measurements=tuple(
            _labelled(measurement, at)
            for at, one in kept
            for measurement in one.measurements
        ),
        caveats=(
            _several(len(kept)),
            *dict.fromkeys(caveat for _at, one in kept for caveat in one.caveats),
            *caveats,
        ),
    )


def agreed(maps: Sequence[Mapping[str, _Value]]) -> dict[str, _Value | None]:
    """Return the keys of all maps, with None where their values differ."""
    keys = dict.fromkeys(key for one in maps for key in one)
    first = maps[0]
    return {
        key: first.get(key)
        if all(one.get(key) == first.get(key) for one in maps)
        else None
        for key in keys
    }


def _labelled(measurement: Measurement, document: str) -> Measurement:
    labels = {**measurement.labels, "document": document}
    return measurement._replace(labels=labels)


def _several(count: int) -> Caveat:
    return Caveat(
        code="several-documents",
        severity=Severity.NOTE,
        text=f"the file holds {count} results; each has a label document",
        todo="Save each run in a file of its own.",
    )


def _failed(document: str, capture: Capture) -> Caveat:
    reason = capture.error.text if capture.error else ""
    return Caveat(
        code="document-failed",
        severity=Severity.NOTE,
        text=f"result {document} of the file is a failed run: {reason}",
    )
