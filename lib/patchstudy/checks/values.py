"""How the values of one variant lie."""

from collections.abc import Iterator

from patchstudy import stats
from patchstudy.checks.doubts import Doubt, Material, doubt_about, some, step
from patchstudy.records import Severity


def ties(found: Material) -> Iterator[Doubt]:
    """Most values equal to another one: the tool prints too few digits."""
    for question, units in found.deciding:
        values = units["value"]
        if len(values) >= 6 and 1 < values.nunique() <= len(values) / 2:
            yield doubt_about(
                question, "ties", Severity.NOTE,
                f"only {values.nunique()} different values in {len(values)} units",
                "use output with more digits (JSON)",
            )  # fmt: skip


def outliers(found: Material) -> Iterator[Doubt]:
    """Units far from the others of their variant; flagged, never removed."""
    for question, variant, rows in found.by_variant:
        values = rows["value"].to_numpy(dtype=float)
        if len(values) < 4:
            continue
        far = stats.modified_z_outliers(values, resolution=step(rows))
        if far:
            names = [str(rows["unit"].iloc[number]) for number in far]
            yield doubt_about(
                question, "outlier", Severity.NOTE,
                f"far from the other {variant} units, and kept in all figures "
                f"and tests: {some(names)}",
                "",
            )  # fmt: skip
