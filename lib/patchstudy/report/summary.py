"""The page that lists all studies of a folder of reports."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pandas as pd

from patchstudy import figures
from patchstudy.errors import StudyError
from patchstudy.noise import Noise
from patchstudy.report import files
from patchstudy.report.batch import INDEX, NEXT_INDEX
from patchstudy.report.noise import (
    aa_bank,
    margins_tested,
    percent,
    sizes,
    units_in_words,
)
from patchstudy.report.results import SCHEMA
from patchstudy.report.table import Column, Linked, Note, Table, Vector, visible
from patchstudy.sentences import GUARD_WORDS
from patchstudy.study import is_published
from patchstudy.units import prefix, with_interval

#: Rows of the picture of all changes; with more, nobody could read it.
MANY: Final = 60


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a folder of reports holds.

    Attributes
    ----------
    reports
        ``report.json`` of every study that has one, by name.
    errors
        Why a study has none, or why its newest is not made, by name.
    stale
        What changed since the report was made, by name, as the batch found it; empty
        for nothing.
    pages
        File names of the pages that people's own notebooks made, by name.
    """

    folder: Path
    reports: Mapping[str, Mapping[str, Any]]
    errors: Mapping[str, str]
    stale: Mapping[str, str] = field(default_factory=dict)
    pages: Mapping[str, Sequence[str]] = field(default_factory=dict)


def summary(reports: str | Path) -> Summary:
    """Read all results of a folder of reports.

    A result that cannot be read is an error of its study, and hides no other.

    Raises
    ------
    StudyError
        If there is no ``index.json``.
    """
    folder = Path(reports)
    # While a batch makes this page, its list is not the one of the old page.
    coming = folder / NEXT_INDEX
    listed = _json(coming if coming.is_file() else folder / INDEX)["studies"]
    errors = {one["study"]: one["error"] for one in listed if one["error"]}
    found: dict[str, Mapping[str, Any]] = {}
    for one in listed:
        if one["report"]:
            try:
                found[one["study"]] = _results(folder / one["study"] / "report.json")
            except StudyError as error:
                errors.setdefault(one["study"], str(error))
    return Summary(
        folder=folder,
        reports=found,
        errors=errors,
        stale={one["study"]: one["stale"] for one in listed if one.get("stale")},
        pages={one["study"]: one["pages"] for one in listed if one.get("pages")},
    )


def overview(found: Summary) -> Table:
    """Every study with its decision, the change of its primary metrics, its guards."""
    rows = tuple(
        (
            _links(found.folder, name, [(name, "report.html")], name),
            name.partition("/")[0],
            _devices(report),
            report["decision"],
            "; ".join(_primary(report)) or "not measured",
            _guards(report),
            _measured(report),
            _state(found, name),
            _links(found.folder, name, [*_FILES, *_own_pages(found, name)], "-"),
        )
        for name, report in found.reports.items()
    )
    return Table(
        (
            Column("Study"), Column("Driver", choice=True),
            Column("Devices", choice=True), Column("Decision", choice=True),
            Column("Primary metrics"), Column("Guards"), Column("Measured"),
            Column("Inputs", choice=True), Column("Files"),
        ),
        rows,
        f"{len(rows)} studies, each with the change of its primary metrics",
    )  # fmt: skip


def _devices(report: Mapping[str, Any]) -> str:
    """The devices that were measured, else those of which values were published."""
    names = list(dict.fromkeys(one["device"] for one in report["comparisons"]))
    return ", ".join([one for one in names if not is_published(one)] or names)


_FILES: Final = (
    ("pdf", "report.pdf"),
    ("text", "report.txt"),
    ("json", "report.json"),
    ("notebook", "report.ipynb"),
)


def _own_pages(found: Summary, name: str) -> list[tuple[str, str]]:
    """Pages that people's own notebooks made, as words and file names."""
    return [(one.removesuffix(".html"), one) for one in found.pages.get(name, ())]


def _links(folder: Path, name: str, files: Sequence[tuple[str, str]], text: str) -> str:
    """Links to the files of a study that are there, else the text alone."""
    there = [
        (visible(word), quote(f"{name}/{file}", errors="surrogateescape"))
        for word, file in files
        if (folder / name / file).is_file()
    ]
    return Linked(*there) if there else text


def _said(report: Mapping[str, Any]) -> str:
    """What the decision means, where the word alone could mislead."""
    return str(report.get("decision_in_words", "")).partition(": ")[2]


def _measured(report: Mapping[str, Any]) -> str:
    """The day of the last run, where the files tell it."""
    return str(report.get("measured", {}).get("last") or "-")[:10]


def _state(found: Summary, name: str) -> str:
    if found.errors.get(name):
        return "no new report"
    return "stale" if found.stale.get(name) else "unchanged"


def failures(found: Summary) -> tuple[Note, ...]:
    """Why studies have no report, or one that no longer fits its inputs."""
    notes = [
        Note("caveat", f"{name}: no new report: {error}")
        for name, error in found.errors.items()
    ]
    notes += [
        Note("caveat", f"{name}: old report: {changed}")
        for name, changed in found.stale.items()
        if changed
    ]
    return tuple(notes) or (Note("empty", "Every report fits its inputs."),)


def devices(found: Summary) -> tuple[Table | Note, ...]:
    """Whether devices agree, where one metric was measured on several."""
    rows = tuple(
        (
            name,
            f"{one['metric']}, {one['workload']}",
            _counted(one),
            _SIGNS[one["same_sign"]],
            one["sentence"],
        )
        for name, report in found.reports.items()
        for one in report["devices_together"]
    )
    if not rows:
        return (Note("empty", "No study has one metric on two devices."),)
    columns = (Column("Study"), Column("Metric"), Column("Devices", "right"),
               Column("Signs"), Column("What that says"))  # fmt: skip
    return (Table(columns, rows, "Metrics that several devices share"),)


_SIGNS: Final = {True: "same sign", False: "signs differ", None: "-"}


def _counted(one: Mapping[str, Any]) -> str:
    """How many devices are compared, and how many machines they are."""
    count = len(one["compared"])
    machines = one.get("machines", count)  # not in a report that is older
    if machines == count:
        return str(count)
    return f"{count} on {machines} machine{'s' * (machines > 1)}"


def forest(found: Summary) -> Vector | Note:
    """The change of every primary metric over all studies; of many, the largest."""
    compared = [
        (name, one)
        for name, report in found.reports.items()
        for one in report["comparisons"]
        if one["role"] == "primary" and one["change"] is not None
    ]
    if not compared:
        return Note("caveat", "Nothing could be compared.")
    by_size = sorted(enumerate(compared), key=lambda x: -_in_margins(x[1][1]))
    shown = [one for _, one in sorted(by_size[:MANY], key=lambda x: x[0])]
    reports = found.reports
    rows = [_row(_label(name, reports[name], one), one) for name, one in shown]
    names = dict.fromkeys(name for name, _ in shown)
    alt = " ".join(reports[name]["sentence"] for name in names)
    caption = "Change of every primary metric with its interval and its margin."
    if len(compared) > len(shown):
        caption = (
            f"Primary metrics with their interval and margin: of {len(compared)} the "
            f"{len(shown)} that changed most against their margins. The table has all."
        )
    return Vector(figures.to_svg(figures.forest(pd.DataFrame(rows))), alt, caption)


def _in_margins(one: Mapping[str, Any]) -> float:
    """Size of a change, in margins where it has one of the same scale."""
    size, margin = abs(one["change"]["value"]), one["margin"]
    same = margin["scale"] == one["change"]["scale"] and margin["value"]
    return size / margin["value"] if same else size


def noise(found: Summary) -> tuple[Table | Note, ...]:
    """What A/A studies show by themselves, and which margins that allows to test."""
    bank = aa_bank(found.reports)
    if not bank:
        words = "No study compares a build with itself: the noise is not known."
        return (Note("caveat", words),)
    rows = tuple(
        (
            one.series.device,
            f"{one.series.metric}, {one.series.workload}",
            one.study,
            units_in_words(one),
            percent(one.sd or 0.0),
            *_widths(one),
        )
        for one in bank
    )
    numbers = ("Units", "sd", "A/A interval", "Least margin")
    columns = (Column("Device"), Column("Metric"), Column("A/A study"),
               *(Column(name, "right") for name in numbers))  # fmt: skip
    table = Table(columns, rows, "The noise of each device, where nothing differs")
    told = tuple(Note("text", one) for one in margins_tested(bank, found.reports))
    return (table, *told)


def _widths(one: Noise) -> tuple[str, str]:
    half, least = sizes(one, (1.0, ""))
    return f"+-{half}", least


def _label(name: str, report: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    """Name the study, and the device where it has several."""
    devices = {other["device"] for other in report["comparisons"]}
    return visible(f"{name} on {one['device']}" if len(devices) > 1 else name)


def _row(label: str, one: Mapping[str, Any]) -> dict[str, object]:
    change, margin = one["change"], one["margin"]
    scale, axis = _axis(one)
    infinite = float("inf")
    low = -infinite if change["low"] is None else change["low"]
    high = infinite if change["high"] is None else change["high"]
    same = margin["scale"] == change["scale"]
    noise = one.get("layout_noise")  # not in a report that is older
    return {
        "name": f"{one['metric']}, {one['workload']}",
        "device": label,
        "role": one["role"],
        "change": change["value"] / scale,
        "low": low / scale,
        "high": high / scale,
        "margin": margin["value"] / scale if same else float("nan"),
        "noise": float("nan") if noise is None else noise / scale,
        "axis": axis,
        "verdict": one["verdict"],
    }


def _axis(one: Mapping[str, Any]) -> tuple[float, str]:
    """Scale and unit of a change: percent, points, or the unit of a difference."""
    size = max(one["baseline"]["high"], one["patched"]["high"])
    if one["change"]["scale"] == "ratio":
        return 0.01, "%"
    if one["unit"] == "1":
        return (0.01, "pp") if size <= 1 else (1.0, "count")
    return prefix(size, one["unit"])


def _primary(report: Mapping[str, Any]) -> Iterator[str]:
    """What the decision means, where its word could mislead, and every change."""
    if said := _said(report):
        yield said
    devices = {one["device"] for one in report["comparisons"]}
    for one in report["comparisons"]:
        if one["role"] == "primary":
            where = f"{one['device']}: " if len(devices) > 1 else ""
            yield f"{where}{one['metric']} on {one['workload']}: {_change(one)}"


def _change(one: Mapping[str, Any]) -> str:
    """Verdict and change in few words; the report has the others."""
    verdict, change = one["verdict"], one["change"]
    if change is None or not (one["baseline"] and one["patched"]):
        return verdict
    scale, unit = _axis(one)
    value, *span = _printed([change[x] for x in ("value", "low", "high")], scale, unit)
    decided = verdict in {"better", "worse", "equivalent"}
    if one["qualifiers"] and not decided:
        verdict += f" ({one['qualifiers'][0]})"
    joined = " by" if verdict in {"better", "worse"} else ","
    return f"{verdict}{joined} {value} {unit} [{', '.join(span)}]"


def _printed(
    ends: Sequence[float | None], scale: float, unit: str
) -> tuple[str, str, str]:
    """Write a change with its ends; an end that there is not is a question mark."""
    numbers = (math.nan if x is None else x / scale for x in ends)
    floor = -100.0 if unit == "%" else -math.inf
    value, low, high = with_interval(*numbers, floor=floor)
    return value, low.replace("+nan", "?"), high.replace("+nan", "?")


def _guards(report: Mapping[str, Any]) -> str:
    counts: dict[str, int] = {}
    for one in report["comparisons"]:
        if one["guard"]:
            counts[one["guard"]] = counts.get(one["guard"], 0) + 1
    words = {str(guarded): said for guarded, said in GUARD_WORDS.items()}
    told = (f"{count} {words.get(one, one)}" for one, count in counts.items())
    return "; ".join(told) or "none"


def _results(path: Path) -> Mapping[str, Any]:
    told = _json(path)
    right = isinstance(told, dict) and told.get("schema") == SCHEMA
    if not right or not all(
        isinstance(told.get(name), kind) for name, kind in _NEEDED.items()
    ):
        raise StudyError(f"{path}: not a report of schema {SCHEMA}; report again")
    return told


#: What the page takes from ``report.json``.
_NEEDED: Final = {
    "decision": str, "sentence": str, "comparisons": list, "devices_together": list,
}  # fmt: skip


def _json(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    try:
        return json.loads(files.read(path))
    except FileNotFoundError:
        raise StudyError(f"{path}: no such file; run patchstudy report") from None
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise StudyError(f"{path}: not JSON ({error}); report again") from error
