"""The page that lists all studies of a folder of reports."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pandas as pd

from patchstudy import figures
from patchstudy.errors import StudyError
from patchstudy.report.noise import aa_bank, margins_tested, percent
from patchstudy.report.table import Column, Note, Table, Vector, visible
from patchstudy.units import prefix

_MARKUP: Final = str.maketrans({one: f"\\{one}" for one in r"\`*_{}[]()<>#+-.!|~&$"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """A list of links to files nearby, each with a line of text."""

    items: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> dict[str, str]:
        lines = [
            f"- {_plain(text)}: "
            + ", ".join(
                f"[{_plain(name)}]({quote(path, errors='surrogateescape')})"
                for name, path in links
            )
            for text, links in self.items
        ]
        plain = [text for text, _ in self.items]
        return {"text/markdown": "\n".join(lines), "text/plain": "\n".join(plain)}


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
        What changed since a report was made, by name.
    """

    folder: Path
    reports: Mapping[str, Mapping[str, Any]]
    errors: Mapping[str, str]
    stale: Mapping[str, str] = field(default_factory=dict)


def summary(reports: str | Path) -> Summary:
    """Read all results of a folder of reports.

    Raises
    ------
    StudyError
        If there is no ``index.json``, or a result cannot be read.
    """
    folder = Path(reports)
    listed = _json(folder / "index.json")["studies"]
    return Summary(
        folder=folder,
        reports={
            one["study"]: _json(folder / one["study"] / "report.json")
            for one in listed
            if one["report"]
        },
        errors={one["study"]: one["error"] for one in listed if one["error"]},
        stale={one["study"]: one["stale"] for one in listed if one.get("stale")},
    )


def overview(found: Summary) -> Table:
    """Every study with its decision and the change of its primary metrics."""
    rows = tuple(
        (
            name,
            str(report["decision"]),
            "; ".join(_primary(report)) or "not measured",
            _guards(report),
        )
        for name, report in found.reports.items()
    )
    return Table(
        (Column("Study"), Column("Decision"), Column("Primary metrics"),
         Column("Guards")),
        rows,
        f"{len(rows)} studies",
    )  # fmt: skip


def links(found: Summary) -> Links:
    """Links to the files of every report."""
    return Links(
        items=tuple(
            (
                f"{name}, {report['decision']}",
                tuple(
                    (kind, f"{name}/report.{kind}")
                    for kind in ("html", "pdf", "txt", "json", "ipynb")
                    if (found.folder / name / f"report.{kind}").is_file()
                ),
            )
            for name, report in found.reports.items()
        )
    )


def failures(found: Summary) -> tuple[Note, ...]:
    """Why studies have no report, or an old one."""
    notes = tuple(
        Note("caveat", f"{name}: no new report: {error}")
        for name, error in found.errors.items()
    ) + tuple(
        Note("caveat", f"{name}: old report: {reason}")
        for name, reason in found.stale.items()
    )
    return notes or (Note("text", "Every study has its report."),)


def forest(found: Summary) -> Vector | Note:
    """The change of every primary metric over all studies."""
    rows = pd.DataFrame(
        [
            _row(_label(name, report, one), one)
            for name, report in found.reports.items()
            for one in report["comparisons"]
            if one["role"] == "primary" and one["change"] is not None
        ]
    )
    if rows.empty:
        return Note("caveat", "Nothing could be compared.")
    alt = " ".join(report["sentence"] for report in found.reports.values())
    caption = "Change of every primary metric with its interval and its margin."
    return Vector(figures.to_svg(figures.forest(rows)), alt, caption)


def noise(found: Summary) -> tuple[Table | Note, ...]:
    """What A/A studies show by themselves, and which margins that allows to test."""
    bank = aa_bank(found.reports)
    if not bank:
        words = "No study compares a build with itself: the noise is not known."
        return (Note("caveat", words),)
    rows = tuple(
        (
            one.device,
            f"{one.metric}, {one.workload}",
            one.study,
            str(one.units),
            percent(one.sd),
            f"+-{percent(one.half_width)}",
            percent(one.least_margin),
        )
        for one in bank
    )
    numbers = ("Units", "sd", "A/A interval", "Least margin")
    columns = (Column("Device"), Column("Metric"), Column("A/A study"),
               *(Column(name, "right") for name in numbers))  # fmt: skip
    table = Table(columns, rows, "The noise of each device, where nothing differs")
    told = tuple(Note("text", one) for one in margins_tested(bank, found.reports))
    return (table, *told)


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
    return {
        "name": f"{one['metric']}, {one['workload']}",
        "device": label,
        "role": one["role"],
        "change": change["value"] / scale,
        "low": low / scale,
        "high": high / scale,
        "margin": margin["value"] / scale if same else float("nan"),
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
    for one in report["comparisons"]:
        if one["role"] == "primary":
            yield f"{one['device']}: {one['sentence'].rstrip('.')}"


def _guards(report: Mapping[str, Any]) -> str:
    counts: dict[str, int] = {}
    for one in report["comparisons"]:
        if one["guard"]:
            counts[one["guard"]] = counts.get(one["guard"], 0) + 1
    return ", ".join(f"{count} {word}" for word, count in counts.items()) or "none"


def _json(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StudyError(f"{path}: no such file; run patchstudy report") from None
    except json.JSONDecodeError as error:
        raise StudyError(f"{path}: not JSON ({error.msg}); report again") from error


def _plain(text: str) -> str:
    return visible(text).translate(_MARKUP)
