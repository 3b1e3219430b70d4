"""Read a plain file of counters: a name and a whole number on every line.

Files such as those of a driver in debugfs, /proc/vmstat or /proc/net/snmp6: ``name
value`` or ``name: value``, in the unit that the name says, taken as 64 bits wide. A
line may hold several counters, as in /proc/net/sockstat: ``TCP: inuse 4 orphan 0``
gives ``event:TCP.inuse`` and ``event:TCP.orphan``. A few lines may hold a word instead
(``variant pool``); they become facts.

Nothing in the file tells a counter from a state; names whose words say level, minimum,
maximum or now get the label ``kind`` with ``gauge``. What a driver was set to (size,
threshold, the price of its clock: ``timer_...``) is a gauge too, and a fact.
"""

import re

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import head_lines, line_end, lines
from patchstudy.records import Capture, Measurement, RawFile

_ROW = re.compile(
    r"\s*(?P<name>[A-Za-z_][\w.\-/\[\]]*)(?::[ \t]*|[ \t]+)(?P<rest>\S.*)"
)
_NUMBER = re.compile(r"-?\d{1,20}")
_WORD = re.compile(r"[A-Za-z_][\w.\-]*")
_GAUGE = re.compile(r"(?:^|_)(?:level|min|max|now|size|threshold|timer)(?:_|$)")
_SETTING = re.compile(r"(?:^|_)(?:size|threshold|timer)(?:_|$)")


def sniff(raw: RawFile) -> bool:
    """Say whether every line fits and at least three in four hold a number."""
    top = head_lines(raw)
    if not top or not all(_values(line) for line in top):
        return False
    rows = [_values(line) for _, line in lines(raw)]
    words = sum(any(isinstance(one, str) for one in row.values()) for row in rows)
    return all(rows) and 4 * words <= len(rows)


def load(raw: RawFile) -> Capture:
    """Read every number as a reading of ``event:<name>``."""
    values: dict[str, int | str] = {}
    for number, line in lines(raw):
        row = _values(line)
        if not row or row.keys() & values.keys():
            problem = f"{line.strip()!r} is not a new name with a whole number"
            raise CaptureError(raw.path, problem, where=str(number))
        values.update(row)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="counters",
        measurements=tuple(
            _reading(name, value)
            for name, value in values.items()
            if isinstance(value, int)
        ),
        cumulative=True,
        facts={
            name: value
            for name, value in values.items()
            if isinstance(value, str) or _SETTING.search(name)
        },
        caveats=line_end(raw),
    )


def _values(line: str) -> dict[str, int | str]:
    """Return the numbers of a line or its word by name; none where it does not fit."""
    match = _ROW.fullmatch(line)
    if match is None:
        return {}
    name, rest = match["name"], match["rest"].strip()
    if _NUMBER.fullmatch(rest):
        return {name: int(rest)}
    if _WORD.fullmatch(rest):
        return {name: rest}
    return _pairs(name, rest.split())


def _pairs(name: str, words: list[str]) -> dict[str, int | str]:
    """Return the numbers of a line that has a word before each of them."""
    keys, values = words[::2], words[1::2]
    if len(keys) != len(values) or len(set(keys)) < len(keys):
        return {}
    fit = all(map(_WORD.fullmatch, keys)) and all(map(_NUMBER.fullmatch, values))
    pairs = zip(keys, values, strict=True) if fit else ()
    return {f"{name}.{key}": int(value) for key, value in pairs}


def _reading(name: str, value: int) -> Measurement:
    gauge = {"kind": "gauge"} if _GAUGE.search(name) else {}
    return Measurement(metric=f"event:{name}", value=value, labels=gauge)
