"""Keep what large traces say as Parquet, so that the same bytes are read once.

Only the traces: of a file of some kilobytes, reading Parquet takes longer than reading
the file itself (docs/batch.md). The key is the sha256 of the raw file and that of all
code between the file and its capture, never a time; a kept capture that is damaged,
or of which anything would come back otherwise, is not used. Two programs may keep the
same one at once.
"""

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from patchstudy.records import (
    Capture,
    Caveat,
    Durations,
    Fault,
    Measurement,
    Profile,
    Severity,
    Stack,
)
from patchstudy.variables import PARSED

if TYPE_CHECKING:
    import pyarrow as pa

#: A smaller trace is read as fast as it would be found again.
WORTH: Final = 2**20
#: What was not used for so long is removed, and the oldest beyond this size.
_UNUSED_S: Final = 30 * 24 * 3600
_MOST: Final = 2 * 2**30
_PACKAGE: Final = Path(__file__).parents[1]
#: Everything of the package that loaders import.
CODE: Final = (
    "loaders", "blocks", "records.py", "metrics.py", "units.py", "errors.py",
    "cards.py", "rounding.py", "variables.py",
)  # fmt: skip
_ENDING: Final = ".parquet"
_TOLD, _SIGNED = b"capture", b"sha256"
_COUNTS: Final = "samples"


def kept(digest: str, path: Path, read: Callable[[], Capture]) -> Capture:
    """Return what a raw file says: as it was kept, or read now and kept.

    Parameters
    ----------
    digest
        sha256 of the raw file, in hexadecimal.
    path
        Where it lies now.
    read
        Reads it; what it raises is not kept.
    """
    folder = os.environ.get(PARSED)
    if not folder:
        return read()
    place = Path(folder) / f"{digest}-{code()}{_ENDING}"
    found = _read(place, path)
    if found is None:
        found = read()
        with contextlib.suppress(OSError):  # a full disk makes it slower, not wrong
            _write(place, found)
    return found


@contextlib.contextmanager
def unused() -> Iterator[None]:
    """Let raw files be read, whatever was kept of them."""
    folder = os.environ.pop(PARSED, None)
    try:
        yield
    finally:
        if folder is not None:
            os.environ[PARSED] = folder


@lru_cache(maxsize=1)
def code() -> str:
    """Return the sha256 of all code that a capture depends on, in 16 digits."""
    digest = sha256()
    for name in CODE:
        place = _PACKAGE / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(f"{path.relative_to(_PACKAGE).as_posix()}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def tidy(folder: Path) -> None:
    """Remove captures that were not used for 30 days, and the oldest beyond 2 GiB."""
    try:
        with os.scandir(folder) as found:
            files = [
                (one.stat(), one.path) for one in found if one.name.endswith(_ENDING)
            ]
    except OSError:
        return
    size, oldest = 0, time.time() - _UNUSED_S
    for told, path in sorted(files, key=lambda one: -one[0].st_mtime):
        size += told.st_size
        if size > _MOST or told.st_mtime < oldest:
            with contextlib.suppress(OSError):
                os.unlink(path)  # noqa: PTH108 - a name of os.scandir


# ---- to Parquet and back ------------------------------------------------------------


def _write(place: Path, capture: Capture) -> None:
    """Keep a capture if it comes back as it is.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    from pyarrow import parquet  # noqa: PLC0415 - only where something is kept

    table = _table(capture)
    if table is None or _capture(table, capture.path) != capture:
        return
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file, name = tempfile.mkstemp(dir=place.parent, suffix=".new" + _ENDING)
    try:
        with os.fdopen(file, "wb") as opened:
            parquet.write_table(table, opened, write_page_checksum=True)
        os.replace(name, place)  # noqa: PTH105 - a name of mkstemp
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _read(place: Path, path: Path) -> Capture | None:
    """Return a kept capture; None where there is none that is whole."""
    from pyarrow import ArrowException, parquet  # noqa: PLC0415

    try:
        with place.open("rb") as file:
            table = parquet.ParquetFile(file, page_checksum_verification=True).read()
        found = _capture(table, path)
    except (OSError, ArrowException, LookupError, TypeError, ValueError):
        return None
    with contextlib.suppress(OSError):  # a folder of others can be read only
        os.utime(place)
    return found


def _table(capture: Capture) -> "pa.Table | None":
    """A row a stack, all else as JSON beside them; None where a weight is no number."""
    import pyarrow as pa  # noqa: PLC0415 - only where something is kept

    stacks = [stack for one in capture.profiles for stack in one.stacks]
    kinds = {type(one.weight) for one in stacks}
    if len(kinds) > 1 or not kinds <= {int, float}:
        return None
    weight = pa.int64() if kinds == {int} else pa.float64()
    names = pa.list_(pa.string())
    columns = {
        "profile": pa.array(_numbers(capture.profiles), pa.int32()),
        "frames": pa.array([one.frames for one in stacks], names),
        "objects": pa.array([one.objects for one in stacks], names),
        "weight": pa.array([one.weight for one in stacks], weight),
        _COUNTS: pa.array([one.samples for one in stacks], pa.int64()),
        "comm": pa.array([one.comm for one in stacks], pa.string()),
    }
    told = json.dumps(_rest(capture)).encode("ascii")
    signed = sha256(told).hexdigest().encode("ascii")
    return pa.table(columns).replace_schema_metadata({_TOLD: told, _SIGNED: signed})


def _numbers(profiles: Iterable[Profile]) -> list[int]:
    return [number for number, one in enumerate(profiles) for _ in one.stacks]


def _rest(capture: Capture) -> dict[str, Any]:
    """All of a capture but its path and its stacks."""
    bare = [replace(one, stacks=()) for one in capture.profiles]
    told = asdict(replace(capture, path=Path(), profiles=()))
    del told["path"]
    return told | {"profiles": [asdict(one) for one in bare]}


def _capture(table: "pa.Table", path: Path) -> Capture:
    """Make the capture that a table was made of.

    Raises
    ------
    LookupError, TypeError, ValueError
        If it is none.
    """
    metadata: Mapping[bytes, bytes] = table.schema.metadata or {}
    if sha256(metadata[_TOLD]).hexdigest().encode("ascii") != metadata[_SIGNED]:
        raise ValueError("the capture is damaged")
    told = json.loads(metadata[_TOLD])
    stacks = _stacks(table, len(told["profiles"]))
    profiles = [
        Profile(**{**one, "stacks": tuple(own)})
        for one, own in zip(told["profiles"], stacks, strict=True)
    ]
    durations = [
        Durations(
            **{**one, "upper_s": tuple(one["upper_s"]), "calls": tuple(one["calls"])}
        )
        for one in told["durations"]
    ]
    caveats = [
        Caveat(**{**one, "severity": Severity(one["severity"])})
        for one in told["caveats"]
    ]
    made = {
        "path": path,
        "measurements": tuple(Measurement(*one) for one in told["measurements"]),
        "profiles": tuple(profiles),
        "durations": tuple(durations),
        "caveats": tuple(caveats),
        "error": Fault(**told["error"]) if told["error"] else None,
    }
    return Capture(**{**told, **made})


def _tuple(value: object) -> Any:  # noqa: ANN401 - of JSON
    return tuple(value) if isinstance(value, list) else value


def _stacks(table: "pa.Table", count: int) -> list[list[Stack]]:
    """Stacks by profile, in their order."""
    found: list[list[Stack]] = [[] for _ in range(count)]
    columns = (
        table["profile"].to_pylist(),
        _names(table["frames"]),
        _names(table["objects"]),
        table["weight"].to_pylist(),
        table[_COUNTS].to_pylist(),
        table["comm"].to_pylist(),
    )
    for number, frames, objects, weight, samples, comm in zip(*columns, strict=True):
        found[number].append(
            Stack(
                frames=frames,
                objects=objects,
                weight=weight,
                samples=samples,
                comm=comm,
            )
        )
    return found


def _names(column: "pa.ChunkedArray") -> Sequence[tuple[str, ...]]:
    """Tuples of names; each name is in memory once."""
    whole = column.combine_chunks()
    if not len(whole):
        return []
    coded = whole.flatten().dictionary_encode()
    names = coded.dictionary.to_pylist()
    words = [names[at] for at in coded.indices.to_pylist()]
    ends = whole.offsets.to_pylist()
    return [tuple(words[start:end]) for start, end in pairwise(ends)]
