"""The parts of a flent data file: its metadata and its measured series.

Part of the loader ``flent``, whose docstring says what the values are.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import reading
from patchstudy.loaders.text import mapping, sequence
from patchstudy.records import RawFile
from patchstudy.units import to_base

_LOAD: Final = re.compile(r"^(TCP|UDP) (upload|download)(?:::(\d+)| (.+?))?$")
_PING: Final = re.compile(r"^Ping \(ms\)(?:::(\d+)| (.+))$")
_CPU: Final = re.compile(r"^cpu_stats_(.+)::(?:load|cpu\d+)$")
#: What flent works out from other series.
_DERIVED: Final = re.compile(
    r"^(?:TCP|UDP|Ping)\b.*(?:[ :](?:sum|avg|fairness|totals?)|smoothed average)$"
)
_SOCKET: Final = re.compile(r"::[a-z]\w*$")
_NEWEST: Final = 4
#: The first format in which all points of a ping are times.
_TIMES: Final = 4
_ABSURD: Final = 1e18


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One measured series.

    Attributes
    ----------
    name
        As flent calls it.
    kind
        ``TCP``, ``UDP`` or ``ping``.
    direction
        ``upload`` or ``download``; empty for a ping.
    stream
        What tells it from the others of its direction, or which ping it is.
    meta
        Its entry in SERIES_META.
    points
        Its raw values that have a time and a value.
    empty
        Whether all its values are null.
    """

    name: str
    kind: str
    direction: str
    stream: str
    meta: dict[str, object]
    points: list[dict[str, float]]
    empty: bool

    @property
    def mean(self) -> float | None:
        """The tool's final figure in the base unit."""
        value = number(self.meta.get("MEAN_VALUE"))
        usual = "ms" if self.kind == "ping" else "Mbits/s"
        if value is None or self.meta.get("UNITS", usual) != usual:
            return None
        return to_base(value, usual)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One data file.

    Attributes
    ----------
    form
        Number of the file format.
    metadata
        flent's metadata.
    series
        The measured series.
    unread
        Names of other series, neither measured streams nor derived from them.
    cpu
        Host -> its rows of /proc/stat: ``t``, ``load`` and ``cpu0`` ... as shares.
    origin_s
        Start of the time axis in seconds since 1970.
    """

    form: int
    metadata: dict[str, object]
    series: list[Series]
    unread: list[str]
    cpu: dict[str, list[dict[str, float]]]
    origin_s: float

    @property
    def length_s(self) -> float:
        """How long all of it took."""
        return number(self.metadata.get("TOTAL_LENGTH")) or 0.0

    @property
    def idle_s(self) -> float:
        """How long flent measured before and after the load."""
        return self.length_s - (number(self.metadata.get("LENGTH")) or 0.0)

    def streams(self, kind: str, direction: str) -> list[Series]:
        """Return the series of one kind and direction."""
        return [
            one
            for one in self.series
            if one.kind == kind and one.direction == direction
        ]


def read(raw: RawFile) -> Page:
    """Return the parts of one data file.

    Raises
    ------
    CaptureError
        If the JSON is cut or broken, or of a newer format.
    """
    document = _document(raw)
    metadata, results = document.get("metadata"), document.get("results")
    if not isinstance(metadata, dict) or not isinstance(results, dict):
        raise CaptureError(
            raw.path, "no 'metadata' and 'results' objects; not a flent data file"
        )
    form = number(document.get("version", 1))
    if form is None or not 1 <= form <= _NEWEST:
        raise CaptureError(
            raw.path,
            f"flent format {document.get('version')!r} is not known; formats 1 to"
            f" {_NEWEST} are read",
            where="version",
        )
    raw_values = mapping(document.get("raw_values"))
    series = list(_all_series(results, metadata, raw_values, form=form))
    cpu = _cpu(results, raw_values)
    read_names = {one.name for one in series}
    return Page(
        form=int(form),
        metadata=metadata,
        series=series,
        unread=[
            name
            for name in results
            if name not in read_names
            and not _DERIVED.search(name)
            and not ((match := _CPU.match(name)) and match[1] in cpu)
        ],
        cpu=cpu,
        origin_s=_origin(metadata, series),
    )


def _all_series(
    results: dict[str, object],
    metadata: dict[str, object],
    raw_values: dict[str, object],
    *,
    form: float,
) -> Iterator[Series]:
    """Yield every measured series."""
    metas = mapping(metadata.get("SERIES_META"))
    for name, values in results.items():
        meta = mapping(metas.get(name))
        points = _points(raw_values.get(name, meta.get("RAW_VALUES")))
        if form < _TIMES and name.startswith("Ping (ms) UDP"):
            points = _times(points)
        one = _series(name, values, meta, points)
        if one is not None:
            yield one
    for name, told in metas.items():
        meta = mapping(told)
        if name not in results and meta.get("RUNNER") == "IrttRunner":
            yield _irtt(name, meta, _points(raw_values.get(name)))


def _irtt(name: str, meta: dict[str, object], points: list[dict[str, float]]) -> Series:
    """Return the round trips of irtt that flent shows as several series (VoIP)."""
    return Series(
        name=f"{name}::rtt",
        kind="ping",
        direction="",
        stream=name,
        meta=meta,
        points=points,
        empty=not points,
    )


def _cpu(
    results: dict[str, object], raw_values: dict[str, object]
) -> dict[str, list[dict[str, float]]]:
    """Return the CPU load of every host, where its single readings are kept."""
    hosts = {match[1] for name in results if (match := _CPU.match(name))}
    found = {}
    for host in sorted(hosts):
        rows = map(_numbers, sequence(raw_values.get(f"cpu_stats_{host}")))
        known = [row for row in rows if "t" in row and "load" in row]
        if len(known) > 1:
            found[host] = known
    return found


def _document(raw: RawFile) -> dict[str, object]:
    try:
        document = json.loads(raw.text, parse_constant=lambda _name: None)
    except json.JSONDecodeError as error:
        raise CaptureError(
            raw.path,
            f"not JSON ({error.msg}); was it cut short?",
            where=str(error.lineno),
        ) from error
    except (ValueError, RecursionError) as error:
        raise CaptureError(raw.path, f"not flent's JSON ({error})") from error
    return mapping(document)


def _series(
    name: str,
    values: object,
    meta: dict[str, object],
    points: list[dict[str, float]],
) -> Series | None:
    """Return a measured series; None for a derived one or one of another kind."""
    load, ping = _LOAD.match(name), _PING.match(name)
    other = _DERIVED.search(name) or _SOCKET.search(name)
    if other or not (load or ping):
        return None
    kind, direction = (load[1], load[2]) if load else ("ping", "")
    place = [one for one in (load or ping).groups()[-2:] if one]  # type: ignore[union-attr]
    return Series(
        name=name,
        kind=kind,
        direction=direction,
        stream=place[0] if place else "1",
        meta=meta,
        points=points,
        empty=not any(number(one) is not None for one in sequence(values)),
    )


def _points(values: object) -> list[dict[str, float]]:
    """Return the points with time and value; socket statistics have no value."""
    points = map(_numbers, sequence(values))
    return [one for one in points if "t" in one and "val" in one]


def _numbers(row: object) -> dict[str, float]:
    """Return what is a number, not negative, of a row."""
    numbers = {key: number(value) for key, value in mapping(row).items()}
    return {key: value for key, value in numbers.items() if value is not None}


def _times(points: list[dict[str, float]]) -> list[dict[str, float]]:
    """Bring netperf's transactions per second, the points with a length, to ms."""
    return [
        {**one, "val": 1000 / one["val"]} if "dur" in one else one
        for one in points
        if one["val"] > 0 or "dur" not in one
    ]


def _origin(metadata: dict[str, object], series: list[Series]) -> float:
    """Return T0, or the first point where T0 has no zone (formats 1 and 2)."""
    start = moment(metadata.get("T0"))
    if start is not None:
        return start.timestamp()
    return min((point["t"] for one in series for point in one.points), default=0.0)


def moment(text: object) -> datetime | None:
    """Read a time with its zone; without a zone it is no moment."""
    if not isinstance(text, str) or not text.endswith("Z"):
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def number(value: object) -> float | None:
    """Return a number, not negative; flent writes some as text. Else None."""
    found = reading.number(value)
    return found if found is not None and found < _ABSURD else None
