"""The plan that ``patchstudy plan --store`` left in a study, as checks need it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from patchstudy.errors import StudyError
from patchstudy.study.design import Design, Role
from patchstudy.study.keys import declared

#: Metric, workloads, role, margin, whether a guard is required.
MarginKey = tuple[str, tuple[str, ...], str, str, bool]

#: What a plan calls the device of a study that names none.
_ANY: Final = "device"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlan:
    """What was planned before the first run.

    Attributes
    ----------
    digest
        sha256 of ``plan.json``.
    study_sha256
        That of ``study.toml`` when the plan was made; empty where there was none.
    pilot
        Study whose runs the plan was made from; empty where a spread was given.
    margins
        Every declared primary metric and guard with its margin.
    orders
        Device -> the variant of every planned run, in time.
    """

    digest: str
    study_sha256: str
    pilot: str
    margins: tuple[MarginKey, ...]
    orders: Mapping[str, tuple[str, ...]]

    def order_on(self, device: str) -> tuple[str, ...]:
        """Return the variants in their planned order; empty where none was planned.

        A plan without a named device is one for each.
        """
        only = self.orders.get(_ANY, ()) if list(self.orders) == [_ANY] else ()
        return self.orders.get(device, only)


def read_plan(folder: Path) -> StoredPlan | None:
    """Read ``plan.json`` of a study folder; None where there is none.

    Raises
    ------
    StudyError
        If it is no stored plan.
    """
    path = folder / "plan.json"
    try:
        data = declared(path)
    except FileNotFoundError:
        return None
    try:
        return _plan(json.loads(data), sha256(data).hexdigest())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StudyError(
            f"{path}: no stored plan ({type(error).__name__}: {error}); write it with "
            "patchstudy plan --store, or remove it"
        ) from error


def declared_margins(design: Design) -> Iterator[MarginKey]:
    """Yield what a plan keeps of a design: primary metrics, guards, their margins."""
    for one in design.metrics:
        if one.role in {Role.PRIMARY, Role.GUARD}:
            name, margin = one.metric.name, one.margin.text
            yield name, tuple(one.workloads), str(one.role), margin, one.required


def _plan(content: Any, digest: str) -> StoredPlan:  # noqa: ANN401 - any JSON
    return StoredPlan(
        digest=digest,
        study_sha256=str(content["study_sha256"]),
        pilot=str(content["study"]) if content["from"] == "pilot" else "",
        margins=tuple(
            (
                str(one["metric"]),
                tuple(map(str, one["workloads"])),
                str(one["role"]),
                str(one["margin"]),
                bool(one["required"]),
            )
            for one in content["margins"]
        ),
        orders={
            str(one["device"]): tuple(
                str(slot["variant"])
                for slot in sorted(one["slots"], key=lambda slot: slot["position"])
            )
            for one in content["plans"]
        },
    )
