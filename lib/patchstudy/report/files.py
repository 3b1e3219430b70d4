"""Files that are there whole or not at all."""

import contextlib
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

#: No program needs so long to write a report: what is older was left by a dead one.
_ABANDONED_S: Final = 600


def write(path: Path, data: bytes) -> None:
    """Write one file whole, or leave what was there; its folder must exist."""
    write_all(path.parent, {path.name: data})


def write_all(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files beside their final names, then rename all of them.

    A program that is stopped, or a disk that is full, leaves the old files as they
    were; nothing half-written ever has a final name.

    Parameters
    ----------
    folder
        An existing folder.
    files
        Content by plain file name.

    Raises
    ------
    ValueError
        A name is not a plain file name.
    OSError
        The folder cannot be written; nothing is left behind in it.
    """
    for name in files:
        if name in {"", ".."} or Path(name).name != name:
            raise ValueError(f"{name!r} is not a plain file name")
    # Not tempfile: its files are closed to everyone but their owner.
    mark = secrets.token_hex(6)
    _tidy(folder)
    beside = {name: folder / f".{name}.{mark}.tmp" for name in files}
    try:
        for name, data in files.items():
            beside[name].write_bytes(data)
        for name, temporary in beside.items():
            temporary.replace(folder / name)
    finally:
        for temporary in beside.values():
            temporary.unlink(missing_ok=True)


def _tidy(folder: Path) -> None:
    """Remove what programs left behind that were killed while they wrote."""
    for path in folder.glob(".*.tmp"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < time.time() - _ABANDONED_S:
                path.unlink()
