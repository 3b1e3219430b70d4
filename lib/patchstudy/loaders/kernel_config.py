"""Read the configuration of a kernel build (.config, /proc/config.gz), as facts.

scripts/kconfig/confdata.c of the kernel writes ``CONFIG_X=value`` or ``# CONFIG_X is
not set``. Facts: ``kernel`` (the version in the header) and ``options`` by name, values
as written, ``n`` for one that is not set. An option that depends on one that is off
does not stand in the file and is absent.
"""

import re

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import head_lines, line_end, lines
from patchstudy.records import Capture, RawFile

_HEADER = re.compile(r"# (?:Linux/\S+ |Linux kernel version: )?(\d+\.\d\S*)")
_AUTOMATIC = re.compile(r"# Automatically generated .*(?:edit|EDIT)")
_SET = re.compile(r"(CONFIG_\w+)=(.*)")
_NOT_SET = re.compile(r"# (CONFIG_\w+) is not set\s*")


def sniff(raw: RawFile) -> bool:
    """Say whether all lines at the start are options or comments, some an option."""
    top = head_lines(raw)
    options = [line for line in top if _SET.fullmatch(line) or _NOT_SET.fullmatch(line)]
    comments = [line for line in top if line.startswith("#")]
    if not options or not all(line in options or line in comments for line in top):
        return False
    return len(options) > 2 or any(map(_AUTOMATIC.match, comments))


def load(raw: RawFile) -> Capture:
    """Read every option."""
    options: dict[str, str] = {}
    header: dict[str, object] = {}
    for number, line in lines(raw):
        is_set, not_set = _SET.fullmatch(line.rstrip()), _NOT_SET.fullmatch(line)
        if is_set:
            options[is_set[1]] = is_set[2]
        elif not_set:
            options[not_set[1]] = "n"
        elif not line.startswith("#"):
            problem = f"{line[:60]!r} is neither an option nor a comment"
            raise CaptureError(raw.path, problem, where=str(number))
        elif not options and (match := _HEADER.match(line)):
            header["kernel"] = match[1]
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="kernel_config",
        facts={**header, "options": options},
        caveats=line_end(raw),
    )
