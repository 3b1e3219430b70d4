"""The files of a study folder, without reports that were written into it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

#: Beside every report and index: what it was made from. Its folder holds no raw files.
RECORD: Final = ".made.json"


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
