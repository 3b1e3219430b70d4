"""Every figure of a study by its name, each usable alone."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd
import seaborn.objects as so

from patchstudy import figures
from patchstudy.errors import StudyError, printable
from patchstudy.findings import Assessment
from patchstudy.metrics import Kind, metric
from patchstudy.report import figure_tables
from patchstudy.study import Role

#: What a figure can be written as, by the ending of the file's name.
WRITERS: Final[Mapping[str, Callable[[so.Plot], bytes]]] = {
    ".svg": figures.to_svg,
    ".png": figures.to_png,
    ".pdf": figures.to_pdf,
}
_DECIDING: Final = (Role.PRIMARY, Role.CONTROL, Role.GUARD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure that a study has the data for.

    Attributes
    ----------
    name
        The kind of figure, and the metric where there is one of each:
        ``"runs:throughput"``.
    words
        What it shows.
    draw
        Makes it.
    """

    name: str
    words: str
    draw: Callable[[], so.Plot]


def named(assessment: Assessment) -> dict[str, Figure]:
    """Every figure that can be drawn from a study, by name."""
    return {one.name: one for one in _all(assessment)}


def write(assessment: Assessment, name: str, path: Path) -> None:
    """Draw one figure into a file.

    Raises
    ------
    StudyError
        If the study has no such figure, the file's name ends otherwise, or it cannot
        be written.
    """
    known = named(assessment)
    if name not in known:
        raise StudyError(
            f"no figure {printable(name)!r} of {assessment.study.name}; there is "
            f"{', '.join(known)}"
        )
    writer = WRITERS.get(path.suffix.lower())
    if writer is None:
        endings = ", ".join(WRITERS)
        raise StudyError(f"{printable(str(path))}: name it with one of {endings}")
    data = writer(known[name].draw())
    try:
        path.write_bytes(data)
    except OSError as error:
        reason = error.strerror
        raise StudyError(
            f"{printable(str(path))}: cannot be written ({reason})"
        ) from error


def _all(assessment: Assessment) -> Iterator[Figure]:
    rows = figure_tables.forest_rows(assessment)
    if not rows.empty:
        yield Figure(
            name="forest",
            words="every declared change with its interval and margin",
            draw=lambda: figures.forest(rows),
        )
    yield from _of_units(assessment)
    yield from _of_intervals(assessment)
    profile = assessment.profiled
    if not profile.empty:
        yield Figure(
            name="profile",
            words="symbols whose share of the profile changes most",
            draw=lambda: figures.profile_difference(profile, top=15),
        )


def _of_units(assessment: Assessment) -> Iterator[Figure]:
    """Figures of the experimental units of each metric that decides something."""
    chosen = [
        one
        for one in assessment.material.asked
        if one.role in _DECIDING and not one.problem
    ]
    for name in dict.fromkeys(one.planned.metric.name for one in chosen):
        keys = [one.key for one in chosen if one.planned.metric.name == name]
        units = assessment.material.units
        table = units[units["question"].isin(keys)]
        if not table.empty:
            yield from _of_metric(assessment, name, table)


def _of_metric(
    assessment: Assessment, name: str, table: pd.DataFrame
) -> Iterator[Figure]:
    quantity, variants = metric(name), assessment.study.design.variants
    about = {"label": quantity.label, "unit": quantity.unit, "variants": variants}
    yield Figure(
        name=f"runs:{name}",
        words=f"{name}: every unit in its order, by block",
        draw=lambda: figures.runs(table, **about),
    )
    yield Figure(
        name=f"ecdf:{name}",
        words=f"{name}: share of the units below each value",
        draw=lambda: figures.ecdf(table, **about),
    )
    shared = table[table.groupby("workload")["device"].transform("nunique") > 1]
    if not shared.empty:
        yield Figure(
            name=f"interaction:{name}",
            words=f"{name}: device and variant together",
            draw=lambda: figures.interaction(shared, **about),
        )
    loaded = with_load(assessment, table)
    if quantity.kind is Kind.RATE and not loaded.empty:
        yield Figure(
            name=f"cpu:{name}",
            words=f"{name} against the busiest CPU, run by run",
            draw=lambda: figures.against_cpu(loaded, **about),
        )


def with_load(assessment: Assessment, units: pd.DataFrame) -> pd.DataFrame:
    """Add the share of the busiest CPU to units that are single runs.

    Returns
    -------
    pandas.DataFrame
        The columns of ``units`` and ``load``; rows whose run has no CPU are left out.
    """
    runs = assessment.material.runs
    plain = runs[(runs["metric"] == "cpu_busy_max")]
    keys = ["device", "workload", "variant", "order"]
    busiest = plain.groupby(keys)["value"].max().rename("load").reset_index()
    alone = units[units["runs"] == 1]
    joined = alone.merge(busiest, on=keys)
    return joined.sort_values(["device", "workload", "order"], ignore_index=True)


def _of_intervals(assessment: Assessment) -> Iterator[Figure]:
    for name, tool, table in figure_tables.courses(assessment):
        quantity, variants = metric(name), assessment.study.design.variants
        yield Figure(
            name=f"course:{name}:{tool}",
            words=f"{name} within each run, interval by interval ({tool})",
            draw=lambda table=table, quantity=quantity, variants=variants: (
                figures.course(
                    table,
                    label=quantity.label,
                    unit=quantity.unit,
                    variants=variants,
                )
            ),
        )
