"""Read ``sysctl -a``: the settings of the running kernel, as facts.

``key = value`` on every line, as sysctl of procps and BusyBox print them; a value may
be empty or hold blanks and TABs. A line ``sysctl: ...`` is an error message about one
key and is left out. Facts: ``sysctl`` by key, values as printed.
"""

import re

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import head_lines, line_end, lines
from patchstudy.records import Capture, RawFile

_ROW = re.compile(r"([a-z][\w-]*[./][^\s=]+) = ?(.*)")
_ERROR = re.compile(r"sysctl: .*")


def sniff(raw: RawFile) -> bool:
    """Say whether every line at the start is a dotted key and a value."""
    top = [line for line in head_lines(raw) if not _ERROR.fullmatch(line)]
    return bool(top) and all(map(_ROW.fullmatch, top))


def load(raw: RawFile) -> Capture:
    """Read every setting."""
    settings: dict[str, str] = {}
    for number, line in lines(raw):
        match = _ROW.fullmatch(line)
        if match:
            settings[match[1]] = match[2].strip()
        elif not _ERROR.fullmatch(line):
            problem = f"{line[:60]!r} is not a key, '=' and a value"
            raise CaptureError(raw.path, problem, where=str(number))
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="sysctl",
        facts={"sysctl": settings},
        caveats=line_end(raw),
    )
