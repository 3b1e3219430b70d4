"""Read /proc/meminfo: how the memory is used at one moment.

``meminfo_proc_show`` in fs/proc/meminfo.c: ``Name: number kB``, where kB means 1024
bytes. Every value is a state, no counter: ``event:<name>`` in bytes with the label
``kind`` and ``gauge``; the numbers of huge pages have no unit and are counts.
"""

import re

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import line_end, lines
from patchstudy.records import Capture, Measurement, RawFile

_FIRST = re.compile(r"\s*MemTotal: +\d+ kB\s*(?:\n|$)")
_ROW = re.compile(r"([\w()]+): +(\d{1,20})( kB)?\s*")


def sniff(raw: RawFile) -> bool:
    """Say whether it begins with the total."""
    return _FIRST.match(raw.head) is not None


def load(raw: RawFile) -> Capture:
    """Read every line as a gauge."""
    values: dict[str, int] = {}
    for number, line in lines(raw):
        match = _ROW.fullmatch(line)
        if match is None or match[1] in values:
            problem = f"{line.strip()!r} is not a new name with a number of kB"
            raise CaptureError(raw.path, problem, where=str(number))
        values[match[1]] = int(match[2]) * (1024 if match[3] else 1)
    gauge = {"kind": "gauge"}
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="meminfo",
        measurements=tuple(
            Measurement(metric=f"event:{name}", value=value, labels=gauge)
            for name, value in values.items()
        ),
        cumulative=True,
        caveats=line_end(raw),
    )
