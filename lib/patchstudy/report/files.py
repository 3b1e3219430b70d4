"""Files that are there whole or not at all, and sets of files that change together.

A set is written into a folder of its own beside the old files, ``.MARK.new``, and
forced to the disk. Then that folder is renamed to ``.switch``: from this moment on the
new set counts. What is left is to move its files to their places. A program that is
killed in between leaves ``.switch``, and whoever looks at the files next does the rest
first (``settle``): nobody takes old files and new ones for one set.
"""

import contextlib
import errno
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None

#: The folder of a set that counts already, while its files move to their places.
SWITCH: Final = ".switch"
#: No file of a report is as large.
LARGEST: Final = 256 * 2**20
#: What becomes of a file of a set, as the first sign of its name there.
_PUT, _DROP = "+", "-"
#: No program needs so long to write a report; told by age only where locks are none.
_ABANDONED_S: Final = 600
_TAKEN: Final = (errno.ENOTEMPTY, errno.EEXIST)
#: What file systems say that cannot force a folder to the disk.
_CANNOT_FORCE: Final = (errno.EINVAL, errno.ENOTSUP, errno.EACCES)


def write(path: Path, data: bytes) -> None:
    """Write one file whole, or leave what was there; its folder must exist.

    Raises
    ------
    ValueError
        It has no plain file name.
    OSError
        The folder cannot be written, or a device or pipe lies there, which a file must
        not replace; nothing is left behind in it.
    """
    _require_plain(path.name)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "no plain file", str(path))
    with _beside(path.parent) as new:
        _store(new, {path.name: data})
        (new / path.name).replace(path)
    _force(path.parent)


def write_all(folder: Path, files: Mapping[str, bytes | None]) -> None:
    """Put a set of files in the place of older ones, all of them or none.

    Parameters
    ----------
    folder
        An existing folder.
    files
        Content by plain file name; None for a file that is to go.

    Raises
    ------
    ValueError
        A name is not a plain file name.
    OSError
        The folder cannot be written; nothing is left behind in it.
    """
    for name in files:
        _require_plain(name)
        if (folder / name).is_dir():
            problem = os.strerror(errno.EISDIR)
            raise IsADirectoryError(errno.EISDIR, problem, str(folder / name))
    with _beside(folder) as new:
        marked = {
            f"{_DROP if data is None else _PUT}{name}": data or b""
            for name, data in files.items()
        }
        _store(new, marked)
        _force(new)
        _commit(new, folder)
    settle(folder)


def settle(folder: Path) -> None:
    """Finish what a killed program began: move the files of the set that counts.

    Several programs may do so at once.

    Raises
    ------
    OSError
        The folder cannot be written: its files may be old and new ones. Or what lies
        there is not what ``write_all`` leaves: then nothing is touched.
    """
    switch = folder / SWITCH
    names = _waiting(switch)
    if names is None:
        return
    for name in names:
        with contextlib.suppress(FileNotFoundError):  # another program did it
            if name.startswith(_PUT):
                (switch / name).replace(folder / name[1:])
            else:
                (folder / name[1:]).unlink(missing_ok=True)
                (switch / name).unlink()
    _force(folder)
    try:
        switch.rmdir()
    except OSError as error:  # gone, or the next set already
        if error.errno not in {*_TAKEN, errno.ENOENT}:
            raise


def _waiting(switch: Path) -> list[str] | None:
    """Return the names in the folder of a set that counts; None where there is none.

    A report may come from a stranger: a link is not followed, no other name is taken.
    """
    if switch.is_symlink():
        raise _no_set(switch)
    try:
        names = os.listdir(switch)  # noqa: PTH208 - names, and an error where none is
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        raise _no_set(switch) from error
    if not all(one[0] in {_PUT, _DROP} and is_plain(one[1:]) for one in names):
        raise _no_set(switch)
    return names


def _no_set(switch: Path) -> OSError:
    problem = "was not left by patchstudy; remove it"
    return OSError(errno.EINVAL, problem, str(switch))


def is_plain(name: str) -> bool:
    """Say whether a name is that of a file in the folder where it stands."""
    return name not in {"", ".."} and "\0" not in name and Path(name).name == name


def _require_plain(name: str) -> None:
    if not is_plain(name):
        raise ValueError(f"{name!r} is not a plain file name")


def leads_out(place: Path, folder: Path) -> bool:
    """Say whether a link on the way from a folder to a place leads out of the folder.

    The folder itself may be one: who names it says where reports go.
    """
    return not place.resolve().is_relative_to(folder.resolve())


def read(path: Path) -> bytes:
    """Return the bytes of a file of a report, which may come from a stranger.

    Raises
    ------
    OSError
        It cannot be read, is no plain file, or is larger than ``LARGEST``.
    """
    # A pipe would keep us waiting.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(handle, "rb") as file:  # noqa: PTH123 - a handle, not a path
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "no plain file", str(path))
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        problem = f"larger than {LARGEST // 2**20} MiB"
        raise OSError(errno.EFBIG, problem, str(path))
    return data


def _commit(new: Path, folder: Path) -> None:
    """Let a set count; what another program left goes to its place before."""
    while True:
        settle(folder)
        try:
            new.rename(folder / SWITCH)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
        else:
            return _force(folder)


def _store(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        # Not tempfile: its files are closed to everyone but their owner.
        (folder / name).write_bytes(data)
    for name in files:
        _force(folder / name)


def _force(place: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    try:
        handle = os.open(place, os.O_RDONLY)
    except PermissionError:  # a folder that may be written and not read
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _CANNOT_FORCE:
            raise
    finally:
        os.close(handle)


# ---- folders of sets that do not count yet ------------------------------------------


@contextlib.contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """Make a folder in a folder, gone afterwards, and remove those of dead programs."""
    for old in folder.glob(".*.new"):
        _remove_abandoned(old)
    new, handle = _held(folder)
    try:
        yield new
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _held(folder: Path) -> tuple[Path, int | None]:
    """Make a folder and hold its lock; without locks there is no handle."""
    while True:
        new = folder / f".{secrets.token_hex(6)}.new"
        try:
            new.mkdir()
        except OSError as error:  # people know the folder, not what we put into it
            raise OSError(error.errno, error.strerror, str(folder)) from error
        try:
            handle = _lock(new, wait=True)
        except OSError:  # no locks here, or gone
            handle = None
        if new.exists():  # not taken for that of a dead program before it was locked
            return new, handle
        if handle is not None:
            os.close(handle)


def _lock(place: Path, *, wait: bool) -> int | None:
    """Return a handle that holds the lock of a folder; None where there are no locks.

    Raises
    ------
    BlockingIOError
        Another program holds it, and we do not wait.
    """
    if fcntl is None:
        return None
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(handle)
        raise
    return handle


def _remove_abandoned(old: Path) -> None:
    """Remove a folder that nobody writes to any more."""
    with contextlib.suppress(OSError):
        handle = None
        try:
            handle = _lock(old, wait=False)
        except BlockingIOError:
            return
        except OSError:
            pass  # no locks here
        try:
            aged = old.stat().st_mtime < time.time() - _ABANDONED_S
            if handle is not None or aged:
                shutil.rmtree(old)
        finally:
            if handle is not None:
                os.close(handle)
