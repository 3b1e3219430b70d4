"""Ask a study something else: choose a metric and a place, see every run behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import pandas as pd

from patchstudy import figures, tables
from patchstudy.errors import StudyError
from patchstudy.findings import Assessment, assess
from patchstudy.metrics import metric
from patchstudy.report.ledger import address
from patchstudy.report.table import Column, Linked, Note, Table, Vector
from patchstudy.study import Study
from patchstudy.tables import Question
from patchstudy.units import for_people

#: Columns of ``Explorer.runs``.
RUN_COLUMNS: Final = (
    "device", "workload", "variant", "block", "order", "name", "value", "path",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Explorer:
    """A study with everything that was measured in it, by metric, device, workload."""

    assessment: Assessment

    @property
    def metrics(self) -> list[str]:
        """Metrics that were measured, those of ``study.toml`` first."""
        asked = self.assessment.material.asked
        return list(
            dict.fromkeys(one.planned.metric.name for one in asked if not one.problem)
        )

    def places(self, name: str) -> list[tuple[str, str]]:
        """Devices and workloads on which a metric was measured.

        Raises
        ------
        StudyError
            If it was not measured at all.
        """
        return [(one.device, one.workload) for one in self._questions(name)]

    def runs(self, name: str, device: str = "", workload: str = "") -> pd.DataFrame:
        """One row per run: columns ``RUN_COLUMNS``, values in the base unit.

        Raises
        ------
        StudyError
            If the metric was not measured there.
        """
        chosen = self._chosen(name, device, workload)
        rows = [tables.series(self.assessment.material.runs, one) for one in chosen]
        return pd.concat(rows, ignore_index=True)[list(RUN_COLUMNS)]

    def table(self, name: str, device: str = "", workload: str = "") -> Table:
        """The same runs for people, each with a link to its raw file."""
        unit, folder = metric(name).unit, self.assessment.study.folder
        rows = tuple(
            (
                str(row["name"]),
                f"{row['workload']} on {row['device']}",
                str(row["variant"]),
                str(row["order"]),
                for_people(float(row["value"]), unit),
                Linked((str(row["path"]), address(folder, str(row["path"])))),
            )
            for row in self.runs(name, device, workload).to_dict("records")
        )
        columns = (Column("Run"), Column("Where"), Column("Variant"),
                   Column("Order", "right"), Column(name, "right"),
                   Column("Raw file"))  # fmt: skip
        return Table(columns, rows, f"{len(rows)} runs with {name}")

    def figure(self, name: str, device: str = "", workload: str = "") -> Vector:
        """Every unit of a metric in order of time."""
        keys = [one.key for one in self._chosen(name, device, workload)]
        units = self.assessment.material.units
        quantity = metric(name)
        plot = figures.runs(
            units[units["question"].isin(keys)],
            label=quantity.label,
            unit=quantity.unit,
            variants=self.assessment.study.design.variants,
        )
        words = f"{quantity.label}, every unit in its order"
        return Vector(figures.to_svg(plot), words, f"{words}.")

    def menu(self) -> Any:  # noqa: ANN401 - a widget, where ipywidgets is installed
        """Menus for metric, device and workload above the figure and the runs.

        Without ipywidgets: a note that says how to ask by name.
        """
        try:
            widgets = import_module("ipywidgets")
        except ImportError:
            return Note(
                "text",
                "Menus need ipywidgets (make lab installs it). Without them ask by "
                f"name: explorer.table({self.metrics[0]!r}).",
            )
        places = {
            f"{workload} on {device}": (device, workload)
            for name in self.metrics
            for device, workload in self.places(name)
        }
        return widgets.interactive(
            self._show,
            name=widgets.Dropdown(options=self.metrics, description="metric"),
            place=widgets.Dropdown(
                options={"everywhere": ("", ""), **places}, description="where"
            ),
        )

    def _show(self, name: str, place: tuple[str, str]) -> None:
        from IPython.display import display  # noqa: PLC0415 - only for menus

        try:
            display(self.figure(name, *place), self.table(name, *place))
        except StudyError as error:
            display(Note("caveat", str(error)))

    def _questions(self, name: str) -> list[Question]:
        found = [
            one
            for one in self.assessment.material.asked
            if one.planned.metric.name == name and not one.problem
        ]
        if not found:
            known = ", ".join(self.metrics)
            raise StudyError(f"{name}: not measured in this study; there is {known}")
        return found

    def _chosen(self, name: str, device: str, workload: str) -> Sequence[Question]:
        found = [
            one
            for one in self._questions(name)
            if device in {"", one.device} and workload in {"", one.workload}
        ]
        if not found:
            where = " on ".join(filter(None, (workload, device)))
            raise StudyError(f"{name}: not measured with {where}")
        return found


def explore(study: Study) -> Explorer:
    """Open a study for questions that its report does not answer."""
    return Explorer(assessment=assess(study))
