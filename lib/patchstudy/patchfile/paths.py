"""Driver and subsystem by the path of a file; see docs/study.md for the rules."""

import re
from pathlib import PurePosixPath
from typing import Final

_STEM: Final = re.compile(r"(?:_main|_core|-).*\Z")
#: Top folders of a kernel tree that a patch of the network may touch.
_TOPS: Final = frozenset({"drivers", "net", "include", "Documentation", "arch", "lib"})


def place(paths: list[str]) -> tuple[str | None, str | None]:
    """Return driver and subsystem by the path of the first file that tells them.

    ``drivers/net/ethernet/<vendor>/<driver>/`` names the folder, a file right below the
    vendor its stem; ``drivers/net/usb/<driver>.c`` the stem; ``drivers/net/wireless``
    the last folder. Files outside ``drivers/net`` have no driver.
    """
    for path in paths:
        parts = PurePosixPath(path).parts
        named = parts[-1] not in {"Makefile", "Kconfig"}
        if parts[:2] == ("drivers", "net") and len(parts) > 3:
            if named or len(parts) > 5:
                return _driver(parts[2:]), parts[2]
        elif parts[:2] == ("drivers", "net") and len(parts) == 3 and named:
            return _STEM.sub("", PurePosixPath(path).stem), "net"
    core = next(
        (PurePosixPath(one).parts for one in paths if one.startswith("net/")), ()
    )
    return None, "/".join(core[:2]) if core else None


def in_tree(path: str) -> str:
    """Return a path from the top of the tree: ``linux-5.4/net/x.c`` is ``net/x.c``."""
    first, *rest = PurePosixPath(path).parts or ("",)
    return "/".join(rest) if rest and first not in _TOPS and rest[0] in _TOPS else path


def _driver(parts: tuple[str, ...]) -> str:
    """Name the driver of a path below ``drivers/net``."""
    stem = _STEM.sub("", PurePosixPath(parts[-1]).stem)
    folders = parts[1:-1]
    if parts[0] == "ethernet":
        return folders[1] if len(folders) > 1 else stem
    if parts[0] == "wireless":
        return folders[-1] if len(folders) > 1 else stem
    return folders[-1] if folders else stem
