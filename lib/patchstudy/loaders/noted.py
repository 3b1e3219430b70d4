"""Note which raw file is read, so that it can be named when this process dies of it."""

import contextlib
import os
from pathlib import Path

from patchstudy.variables import READING


class noted:  # noqa: N801 - a word in front of a block
    """Note the path while a raw file is read; it stays noted if memory runs out.

    A class, not a generator: it is entered for every file, and costs a third.
    """

    __slots__ = ("note", "place")

    def __init__(self, path: Path) -> None:
        self.place = os.environ.get(READING)
        self.note = os.fsencode(path) if self.place else b""

    def __enter__(self) -> None:
        if self.place:
            _write(self.place, self.note)

    def __exit__(self, kind: type[BaseException] | None, *_others: object) -> None:
        # after a lack of memory the note stays: who runs us will want to know
        if self.place and not (kind and issubclass(kind, MemoryError)):
            _write(self.place, b"")


def _write(place: str, note: bytes) -> None:
    with contextlib.suppress(OSError), open(place, "wb", buffering=0) as file:  # noqa: PTH123 - a tenth of the time
        file.write(note)
