"""Read ``lscpu``, text, JSON (``-J``) or a table (``-p``, ``-e``, ``-C``), as facts.

sys-utils/lscpu.c of util-linux. The fields are kept as printed, in the words of the
locale, and their values as text: facts ``lscpu`` by field. JSON nests the fields in
newer versions; here they stand side by side. The tables of ``-p`` and ``-e`` (also as
JSON) have a row a CPU: facts ``topology``, by the columns' names as printed.
``number_of_cpus`` is the number of ``CPU(s)``, or of rows that are not offline. The
tables of ``-C`` have a row a cache: facts ``caches``, sizes as printed.
"""

import re
from collections.abc import Iterator

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import json_value, lines
from patchstudy.records import Capture, RawFile

_JSON = re.compile(r'\s*\{\s*"lscpu"\s*:\s*\[')
_ROWS_JSON = re.compile(r'\s*\{\s*"cpus"\s*:\s*\[\s*\{\s*"cpu"\s*:')
_CACHES_JSON = re.compile(r'\s*\{\s*"caches"\s*:\s*\[\s*\{\s*"name"\s*:')
_CACHES = re.compile(r"\s*NAME +ONE-SIZE(?: +[A-Z-]+)+ *\r?\n *\S+ +\d")
_EXTENDED = re.compile(
    r"\s*CPU(?: +(?:NODE|SOCKET|CORE|CLUSTER|BOOK|DRAWER|L1d\S*|CACHE|ONLINE|ADDRESS"
    r"|CONFIGURED|POLARIZATION|(?:SCAL|MAX|MIN)?MHZ%?))+ *\r?\n *\d+ "
)
_TABLE = re.compile(r"^# (CPU,\S*)\s*$", re.MULTILINE)
_NAMED = re.compile(r"\s*Ar[a-z]*te[ck]tu[a-z]*\s*:\s")
_ONLINE = ("ONLINE", "Online", "online")
_COUNT = re.compile(
    r"^(?:CPU|Processeur|Processore|Procesador)[^:\n]*:\s+\d+\s*$", re.MULTILINE
)


def sniff(raw: RawFile) -> bool:
    """Say whether it is an object ``lscpu``, its table, or fields from architecture."""
    head = raw.head
    tables = (_JSON, _ROWS_JSON, _EXTENDED, _CACHES, _CACHES_JSON)
    if any(pattern.match(head) for pattern in tables):
        return True
    if head.startswith("#"):
        return _TABLE.search(head) is not None
    return _NAMED.match(head) is not None and _COUNT.search(head) is not None


def load(raw: RawFile) -> Capture:
    """Read every field as a fact."""
    if _JSON.match(raw.head):
        fields = dict(_of_json(raw, json_value(raw)))
    elif _ROWS_JSON.match(raw.head):
        return _capture(raw, _topology(_rows_of_json(raw, "cpus")))
    elif _CACHES_JSON.match(raw.head):
        return _capture(raw, {"caches": _rows_of_json(raw, "caches")})
    elif _CACHES.match(raw.head):
        return _capture(raw, {"caches": _extended(raw)})
    elif _EXTENDED.match(raw.head):
        return _capture(raw, _topology(_extended(raw)))
    elif raw.head.startswith("#"):
        return _capture(raw, _topology(_table(raw)))
    else:
        fields = _of_text(raw)
    count = fields.get("CPU(s)", "")
    number = {"number_of_cpus": int(count)} if count.isdecimal() else {}
    return _capture(raw, {**number, "lscpu": fields})


def _capture(raw: RawFile, facts: dict[str, object]) -> Capture:
    return Capture(path=raw.path, sha256=raw.digest, tool="lscpu", facts=facts)


def _of_text(raw: RawFile) -> dict[str, str]:
    """Return the fields of the text; a field without a value is a heading."""
    fields: dict[str, str] = {}
    for number, line in lines(raw):
        name, colon, value = line.strip().partition(":")
        if not colon:
            problem = f"{line.strip()[:60]!r} is not a field, a colon and a value"
            raise CaptureError(raw.path, problem, where=str(number))
        if value.strip():
            fields[name.strip()] = value.strip()
    return fields


def _of_json(raw: RawFile, value: object) -> Iterator[tuple[str, str]]:
    """Yield the fields of the JSON, those below others after them."""
    listed = value.get("lscpu") if isinstance(value, dict) else value
    for one in listed if isinstance(listed, list) else []:
        if not isinstance(one, dict) or "field" not in one:
            raise CaptureError(raw.path, "not the fields of lscpu", where="lscpu")
        if one.get("data") is not None:
            yield str(one["field"]).removesuffix(":"), str(one["data"])
        yield from _of_json(raw, one.get("children", []))


def _table(raw: RawFile) -> list[dict[str, str]]:
    """Return the rows of ``-p`` by their columns."""
    header = _TABLE.search(raw.text)
    columns = header[1].split(",") if header else []
    return [
        _row(raw, columns, line.strip().split(","), str(number))
        for number, line in lines(raw)
        if not line.startswith("#")
    ]


def _extended(raw: RawFile) -> list[dict[str, str]]:
    """Return the rows of ``-e`` or ``-C`` by their columns."""
    (_, header), *rest = lines(raw)
    columns = header.split()
    return [_row(raw, columns, line.split(), str(number)) for number, line in rest]


def _row(
    raw: RawFile, columns: list[str], values: list[str], where: str
) -> dict[str, str]:
    """Return a row by its columns; what is not told is left out."""
    if len(values) != len(columns):
        problem = f"{len(values)} values for {len(columns)} columns"
        raise CaptureError(raw.path, problem, where=where)
    told = zip(columns, values, strict=True)
    return {key: value for key, value in told if value not in {"", "-"}}


def _rows_of_json(raw: RawFile, name: str) -> list[dict[str, str]]:
    """Return the rows of ``-e -J`` or ``-C -J``; yes and no are words as in text."""
    value = json_value(raw)
    rows = value.get(name) if isinstance(value, dict) else None
    found: list[dict[str, str]] = []
    for at, one in enumerate(rows if isinstance(rows, list) else []):
        if not isinstance(one, dict):
            raise CaptureError(raw.path, "not a row of lscpu", where=f"{name}[{at}]")
        told = {key: _word(cell) for key, cell in one.items()}
        found.append({key: cell for key, cell in told.items() if cell not in {"", "-"}})
    return found


def _word(cell: object) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return "" if cell is None else str(cell)


def _topology(rows: list[dict[str, str]]) -> dict[str, object]:
    """Return the facts of a table."""
    offline = [one for one in rows if {"no", "N"} & {one.get(k) for k in _ONLINE}]
    return {"number_of_cpus": len(rows) - len(offline), "topology": rows}
