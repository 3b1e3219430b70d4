"""Note which raw file is read, so that it can be named when this process dies of it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

#: Names the file in which it is noted; nothing is noted where it is not set.
READING: Final = "PATCHSTUDY_READING"


@contextlib.contextmanager
def noted(path: Path) -> Iterator[None]:
    """Note the path while a raw file is read; it stays noted if memory runs out."""
    place = os.environ.get(READING)
    if not place:
        yield
        return
    _write(place, os.fsencode(path))
    try:
        yield
    except MemoryError:
        raise  # the note stays: who runs us will want to know
    except BaseException:
        _write(place, b"")
        raise
    _write(place, b"")


def _write(place: str, note: bytes) -> None:
    with contextlib.suppress(OSError), open(place, "wb", buffering=0) as file:  # noqa: PTH123 - a tenth of the time
        file.write(note)
