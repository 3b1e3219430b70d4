"""The files of a study folder, without reports that were written into it."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

#: Beside every report and index: what it was made from. Its folder holds no raw files.
RECORD: Final = ".made.json"
#: A file that somebody declared something in is never as large.
MAX_BYTES: Final = 16 * 2**20


def walk(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield every file and link below a folder, with its path relative to the folder.

    Folders of reports, and links to folders, are not entered. Folders that cannot be
    read are passed over.
    """
    waiting = [(str(folder), "")]
    while waiting:
        place, before = waiting.pop()
        try:
            with os.scandir(place) as found:
                entries = list(found)
        except OSError:
            continue
        if before and any(one.name == RECORD for one in entries):
            continue
        for one in entries:
            path = f"{before}{one.name}"
            if one.is_dir(follow_symlinks=False):
                waiting.append((one.path, f"{path}/"))
            else:
                yield path, one


def no_file(folder: Path, path: str) -> str:
    """Say why what a study holds is not read; nothing where it can be, or is absent.

    Links that lead out are not followed; pipes and devices are not opened.
    """
    target = folder / path
    try:
        inside = target.resolve().is_relative_to(folder.resolve())
        there = target.is_file()
    except (OSError, RuntimeError):  # a ring of links
        inside, there = True, False
    if not inside:
        return "is a link that leads out of the study; copy the file into it"
    if there or not os.path.lexists(target):
        return ""
    if target.is_symlink():
        return "is a link to a folder or to nothing; put the files themselves here"
    return "not a file; put a plain file here"


def beside(folder: Path, told: str) -> Path | None:
    """Return another study that a study names by a relative path.

    None where it does not lie where studies lie together, below the folder of the
    drivers: a study may not reach for files of any other place.
    """
    try:
        own = folder.resolve()
        found = (own / told).resolve()
    except (OSError, ValueError, RuntimeError):  # no name of a file, or a ring of links
        return None
    if PurePosixPath(told).is_absolute() or not found.is_relative_to(own.parent.parent):
        return None
    apart = not (found.is_relative_to(own) or own.is_relative_to(found))
    return found if apart else None
