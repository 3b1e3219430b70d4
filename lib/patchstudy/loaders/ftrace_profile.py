"""Read the function profiler of ftrace: tracefs ``trace_stat/function<cpu>``.

``function_stat_show`` in kernel/trace/ftrace.c: function (cut at 30 characters), hits,
and with function_graph the time of all calls, its mean and its variance (s^2, in us^2
although it prints us). One file a CPU; several may be joined by ``head`` or ``tail``.

``calls:<function>`` and ``call_time:<function>`` (time of all calls over their number,
with what they call) over all CPUs of the file. Times of functions must not be added
up: each holds that of the functions it calls.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.reading import Reading
from patchstudy.loaders.text import head_lines, line_end, lines
from patchstudy.records import Capture, RawFile

_HEADER: Final = re.compile(r"\s*Function\s+Hit(?P<time>\s+Time\s+Avg\s+s\^2)?\s*")
_ROW: Final = re.compile(
    r"\s*(?P<name>\S+)\s+(?P<hits>\d{1,20})"
    r"(?:\s+(?P<us>\d+(?:\.\d+)?) us\s+\d+(?:\.\d+)? us(?:\s+\d+(?:\.\d+)? us)?)?\s*"
)
_OTHER: Final = re.compile(r"==> .* <==|[\s-]+|\S*trace_stat/function\d+:?")
_WIDTH: Final = 30


@dataclass(slots=True)
class _Function:
    hits: int = 0
    us: float = 0.0
    timed: bool = field(default=True)


def sniff(raw: RawFile) -> bool:
    """Say whether one of the first lines is the header of the profiler."""
    return any(_HEADER.fullmatch(line) for line in head_lines(raw)[:3])


def load(raw: RawFile) -> Capture:
    """Read hits and times of every function, over all CPUs of the file."""
    functions: dict[str, _Function] = {}
    tables = 0
    for number, line in lines(raw):
        if _HEADER.fullmatch(line):
            tables += 1
            continue
        row = _ROW.fullmatch(line)
        if row is None and _OTHER.fullmatch(line):
            continue
        if row is None:
            problem = f"{line.strip()[:60]!r} is not a function with its hits"
            raise CaptureError(raw.path, problem, where=str(number))
        one = functions.setdefault(row["name"], _Function())
        one.hits += int(row["hits"])
        one.us += float(row["us"] or 0)
        one.timed = one.timed and row["us"] is not None
    out = Reading()
    for name, one in functions.items():
        out.whole(f"calls:{name}", one.hits)
        if one.timed and one.hits:
            mean = one.us / one.hits / 1e6
            out.whole(f"call_time:{name}", mean, exposure=one.hits)
    if any(len(name) >= _WIDTH for name in functions):
        text = f"the kernel cuts names at {_WIDTH} characters; some are as long"
        out.note("names-cut", text)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="ftrace_profile",
        measurements=tuple(out.measurements),
        facts={"cpus": tables, "functions": len(functions)},
        caveats=(*out.caveats, *line_end(raw)),
    )
