"""Traces of any size: read block by block, in as many processes as there are CPUs.

A trace of a busy machine grows by 10 MB a second, so a loader of traces may offer
``load_large`` besides ``load``: it gets a ``LargeFile``, of which only the beginning is
in memory. ``parts`` cuts it into byte ranges at the borders of records, reads each
range in a process of its own, and returns what their readers gathered, in the order of
the file. No process ever holds more than a block and its sums.

The processes are fresh interpreters that run this module: a fork of a program with
threads may hang, and a pool would run the user's own script again.
"""

import gc
import os
import pickle
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Final, Protocol

from patchstudy.errors import CaptureError
from patchstudy.records import RawFile

#: From this size on a plain file is not held in memory, if its loader can do without.
LARGE: Final = 32 * 2**20
_HEAD: Final = 2**20
_BLOCK: Final = 4 * 2**20
#: No record of a trace is as long.
_LONGEST: Final = 64 * 2**20


@dataclass(frozen=True, kw_only=True)
class LargeFile:
    """A raw file of which only the beginning is in memory.

    Attributes
    ----------
    path
        As the user named it.
    size
        In bytes.
    head
        The first MiB, up to its last line end, with the digest of the whole file.
    cut
        True where the file does not end with a line end.
    """

    path: Path
    size: int
    head: RawFile
    cut: bool


class Reader(Protocol):
    """Takes the blocks of a file or of a part of it, and sums up what they hold."""

    def begins(self, data: bytes, at: int) -> bool:
        """Say whether a record begins here, behind a line end."""
        ...

    def feed(self, block: bytes) -> None:
        """Read whole records."""
        ...

    def gathered(self) -> object:
        """Return the sums, of built-in types."""
        ...


def _first(reader: Reader, data: bytes) -> int:
    """Return where the first record begins behind a line end; -1 if unknown."""
    at = -1
    while (at := data.find(b"\n", at + 1)) >= 0:
        if reader.begins(data, at + 1):
            return at + 1
    return -1


def _last(reader: Reader, data: bytes) -> int:
    """Return where the last record begins; 0 if there is none before it."""
    at = len(data)
    while (at := data.rfind(b"\n", 0, at)) >= 0:
        if reader.begins(data, at + 1):
            return at + 1
    return 0


def decoded(data: bytes) -> str:
    """Return the text of bytes; what is no UTF-8 is replaced."""
    return data.decode("utf-8", errors="replace")


def beginning(path: Path) -> RawFile | None:
    """Return the first MiB of a file above ``LARGE``, up to its last line end.

    None for any other file. Its digest is that of these bytes.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    if not _is_large(path):
        return None
    with path.open("rb") as file:
        return RawFile.of(path, _whole_lines(file.read(_HEAD)))


def _is_large(path: Path) -> bool:
    told = os.stat(path)  # noqa: PTH116 - Path's own costs five times as much
    return told.st_size > LARGE and stat.S_ISREG(told.st_mode)


def _whole_lines(head: bytes) -> bytes:
    """Return the beginning of a file up to its last line end, if it has one."""
    return head[: head.rfind(b"\n") + 1] or head


def large(path: Path) -> LargeFile | None:
    """Return a file above ``LARGE`` without reading it into memory; None for others.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    if not _is_large(path):
        return None
    digest = sha256()
    with path.open("rb") as file:
        head = file.read(_HEAD)
        digest.update(head)
        last = head[-1:]
        while block := file.read(_HEAD):
            digest.update(block)
            last = block[-1:]
        size = file.tell()
    raw = RawFile(path=path, data=_whole_lines(head), digest=digest.hexdigest())
    return LargeFile(path=path, size=size, head=raw, cut=last != b"\n")


@contextmanager
def uncollected() -> Iterator[None]:
    """Let Python not look for cycles: readers make millions of tuples and none of them.

    Looking through them again and again takes up to a quarter of the time.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def of_memory(reader: Reader, data: bytes) -> object:
    """Return what a reader gathers from bytes in memory."""

    def read(start: int, size: int) -> bytes:
        return data[start : start + size]

    with uncollected():
        for block in _blocks(reader, read, 0, len(data)):
            reader.feed(block)
        return reader.gathered()


def parts(file: LargeFile, module: ModuleType) -> list[object]:
    """Return what the readers of the parts of a file gathered, in its order.

    Parameters
    ----------
    module
        One of this package; its ``reader(head)`` makes a reader, in each process.

    Raises
    ------
    CaptureError
        If a part cannot be read.
    """
    make = partial(module.reader, file.head.data)
    places = list(pairwise(_cuts(file, make(), _cpus())))
    running = [_started(file, module.__name__, *place) for place in places[1:]]
    try:
        found = [_part(make(), file.path, *places[0])]
        return found + [_result(file, one) for one in running]
    except OSError as error:
        raise CaptureError(file.path, f"cannot be read ({error.strerror})") from error
    finally:
        for one in running:
            one.kill()
            one.communicate()


def _cpus() -> int:
    """Return how many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cuts(file: LargeFile, reader: Reader, count: int) -> Iterator[int]:
    """Yield the ends of so many parts, each at the border of a record."""
    yield 0
    done = 0
    with file.path.open("rb") as opened:
        for number in range(1, count):
            start = max(done, file.size * number // count)
            opened.seek(start)
            at = _first(reader, opened.read(_BLOCK))
            if at >= 0 and start + at > done:
                done = start + at
                yield done
    yield file.size


def _started(
    file: LargeFile, module: str, start: int, end: int
) -> subprocess.Popen[bytes]:
    found = [str(Path(__file__).parents[2]), *filter(None, sys.path)]
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "patchstudy.blocks.large",
            module,
            str(file.path),
            str(start),
            str(end),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(found)},
    )


def _result(file: LargeFile, one: subprocess.Popen[bytes]) -> object:
    """Return what a process gathered; its output comes from this program alone."""
    out, err = one.communicate()
    if one.returncode:
        last = err.decode(errors="replace").strip().rpartition("\n")[2][:200]
        raise CaptureError(file.path, f"a part of it could not be read ({last})")
    return pickle.loads(out)


def _blocks(
    reader: Reader, read: Callable[[int, int], bytes], start: int, end: int
) -> Iterator[bytes]:
    """Yield the bytes from start to end in blocks of whole records."""
    rest = b""
    while start < end:
        block = rest + read(start, min(_BLOCK, end - start))
        start += len(block) - len(rest)
        if len(block) == len(rest):
            break  # the file became shorter
        cut = len(block) if start >= end else _last(reader, block)
        if cut == 0 and len(block) > _LONGEST:
            cut = len(block)
        if cut:
            yield block[:cut]
        rest = block[cut:]
    if rest:
        yield rest


def _part(reader: Reader, path: Path, start: int, end: int) -> object:
    """Read one part of a file."""
    with path.open("rb") as file, uncollected():

        def read(at: int, size: int) -> bytes:
            file.seek(at)
            return file.read(size)

        for block in _blocks(reader, read, start, end):
            reader.feed(block)
    return reader.gathered()


def _main(module: str, name: str, start: str, end: str) -> None:
    """Read one part with the reader of a module, and write what it gathered."""
    path = Path(name)
    with path.open("rb") as file:
        head = file.read(_HEAD)
    gc.disable()  # this process ends with its part
    reader = import_module(module).reader(head)
    sys.stdout.buffer.write(pickle.dumps(_part(reader, path, int(start), int(end))))


if __name__ == "__main__":
    _main(*sys.argv[1:])
