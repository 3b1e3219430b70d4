"""Read ``measurements.csv``: numbers from a paper, a mail or a tool without a loader.

Comma-separated with a header. ``metric``, ``unit`` and ``value`` must be there;
``resolution`` (in the same unit) and ``exposure`` (packets or transactions) may be; any
other column is a factor and becomes a label. Empty cells of factors are left out. Every
row is a value of a whole run, in any unit that ``patchstudy.units`` knows.

A row of the ``kind`` ``published`` is no measurement of this study: its ``source`` says
where it was printed, and its last digit is its resolution where none is given.
"""

import csv
import math
from collections.abc import Iterator
from io import StringIO

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import line_end
from patchstudy.metrics import metric
from patchstudy.records import KINDS, Capture, Measurement, RawFile
from patchstudy.rounding import printed
from patchstudy.units import to_base

_NEEDED = ("metric", "unit", "value")
_SPECIAL = {*_NEEDED, "resolution", "exposure"}


def sniff(raw: RawFile) -> bool:
    """Say whether the first line holds the three columns that must be there."""
    first = raw.head.lstrip().partition("\n")[0]
    return set(_NEEDED) <= {cell.strip().strip('"') for cell in first.split(",")}


def load(raw: RawFile) -> Capture:
    """Read every row as one measurement."""
    measurements = tuple(_rows(raw))
    if not measurements:
        raise CaptureError(raw.path, "holds a header but no row")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="measurements",
        measurements=measurements,
        caveats=line_end(raw),
    )


def _rows(raw: RawFile) -> Iterator[Measurement]:
    """Yield the measurement of every row."""
    reader = csv.reader(StringIO(raw.text, newline=""), strict=True)
    header: list[str] = []
    try:
        for cells in reader:
            line = str(reader.line_num)
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header = _header(raw, cells, line)
                continue
            yield _row(raw, header, cells, line)
    except csv.Error as error:
        problem = f"not CSV ({error})"
        raise CaptureError(raw.path, problem, where=str(reader.line_num)) from error


def _header(raw: RawFile, cells: list[str], line: str) -> list[str]:
    """Return the names of the columns."""
    names = [cell.strip() for cell in cells]
    if "" in names or len(set(names)) < len(names):
        problem = f"the columns {names} need names that differ"
        raise CaptureError(raw.path, problem, where=line)
    return names


def _row(raw: RawFile, header: list[str], cells: list[str], line: str) -> Measurement:
    """Return the measurement of one row in the base unit of its metric."""
    if len(cells) != len(header):
        problem = f"{len(cells)} cells under {len(header)} columns"
        raise CaptureError(raw.path, problem, where=line)
    row = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
    try:
        return _measurement(row)
    except KeyError as error:
        raise CaptureError(raw.path, f"no column {error}", where=line) from error
    except ValueError as error:
        raise CaptureError(raw.path, str(error), where=line) from error


def _measurement(row: dict[str, str]) -> Measurement:
    """Return the measurement of one row; ValueError says which cell is wrong."""
    value, unit = to_base(_number(row, "value"), row["unit"])
    published = _published(row)
    expected = metric(row["metric"]).unit
    if unit != expected:
        raise ValueError(
            f"{row['metric']} is measured in {expected}, not in {row['unit']}"
        )
    resolution = exposure = None
    if row.get("resolution"):
        resolution, _ = to_base(_number(row, "resolution"), row["unit"])
    elif published:
        bounds = printed(row["value"])
        resolution, _ = to_base(bounds.high - bounds.low, row["unit"])
    if row.get("exposure"):
        exposure = _number(row, "exposure")
    return Measurement(
        metric=row["metric"],
        value=value,
        labels={
            name: cell for name, cell in row.items() if cell and name not in _SPECIAL
        },
        exposure=exposure,
        resolution=resolution,
    )


def _published(row: dict[str, str]) -> bool:
    """Say whether a row was published; ValueError if it does not say where."""
    kind = row.get("kind", "")
    if kind not in KINDS:
        known = " or ".join(one for one in KINDS if one)
        raise ValueError(f"kind {kind!r} is not {known}")
    if kind == "published" and not row.get("source"):
        raise ValueError(
            "a published value needs a source: the link or the title of where it stands"
        )
    return kind == "published"


def _number(row: dict[str, str], column: str) -> float:
    """Return the finite number of a cell."""
    cell = row[column]
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in cell:
        raise ValueError(f"{column} {cell!r} is not a number such as 12.5")
    return number
