"""Read ``nstat``, as JSON (``-j``) or as text: the kernel's protocol counters.

The names and values are those of /proc/net/snmp, /proc/net/snmp6 and /proc/net/netstat
(misc/nstat.c of iproute2): ``{"kernel": {"TcpRetransSegs": 12, ...}}``, or a line
``#kernel`` and lines of name, value and rate; the rate is that of ``nstat -d`` and is
not read. Counters that are 0 are left out unless nstat was called with ``-z``. With
``-a`` the values are since boot; without it they count from the last call that left a
history. The file does not tell which: take both files of a pair with ``-a``, or with
``-as`` to keep the history.

All values are counts (unit 1), 64 bits wide, of the network namespace in which nstat
ran.
"""

import re
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import counter, json_value, line_end, lines
from patchstudy.records import Capture, Measurement, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "event:*": "JSON: kernel.<name>; text: second column of the line <name>",
}
#: How a file begins that is of nstat and of nothing else.
OPENS = re.compile(r'\{"kernel":\{"\w+":\d|#kernel *\n\w+ +\d')
_JSON = re.compile(r'\s*\{\s*"kernel"\s*:\s*\{\s*(\}|"\w+"\s*:\s*-?\d)')
_TEXT = re.compile(r"\s*#kernel[^\n]*(?:\n|$)")
_ROW = re.compile(r"(\w+)\s+(\d{1,20})(?:\s+\d+(?:[.,]\d+)?)?\s*")


def sniff(raw: RawFile) -> bool:
    """Say whether it is an object ``kernel`` or text with the header ``#kernel``."""
    return any(start.match(raw.head) for start in (_JSON, _TEXT))


def load(raw: RawFile) -> Capture:
    """Read every counter as a reading of ``event:<name>``."""
    text = _JSON.match(raw.head) is None
    counters = _of_text(raw) if text else _of_json(raw)
    if not counters:
        raise CaptureError(raw.path, "holds no counter; call nstat with -a -j")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="nstat",
        measurements=tuple(
            Measurement(metric=f"event:{name}", value=count)
            for name, count in counters.items()
        ),
        cumulative=True,
        caveats=line_end(raw) if text else (),
    )


def _of_json(raw: RawFile) -> dict[str, int]:
    value = json_value(raw)
    counters = value.get("kernel") if isinstance(value, dict) else None
    if not isinstance(counters, dict) or not all(counters):
        return {}
    return {
        name: counter(raw, count, f"kernel.{name}") for name, count in counters.items()
    }


def _of_text(raw: RawFile) -> dict[str, int]:
    counters: dict[str, int] = {}
    for number, line in lines(raw)[1:]:
        match = _ROW.fullmatch(line)
        if match is None or match[1] in counters:
            problem = f"{line.strip()!r} is not a new name with a count and a rate"
            raise CaptureError(raw.path, problem, where=str(number))
        counters[match[1]] = int(match[2])
    return counters
