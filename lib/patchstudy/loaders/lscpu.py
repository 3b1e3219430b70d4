"""Read ``lscpu``, as text, JSON (``-J``) or a table (``-p``): the CPUs, as facts.

sys-utils/lscpu.c of util-linux. The fields are kept as printed, in the words of the
locale, and their values as text: facts ``lscpu`` by field. JSON nests the fields in
newer versions; here they stand side by side. The table of ``-p`` has a row a CPU: facts
``topology``. ``number_of_cpus`` is the number of ``CPU(s)``, or of rows of the table.
"""

import re
from collections.abc import Iterator

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import json_value, lines
from patchstudy.records import Capture, RawFile

_JSON = re.compile(r'\s*\{\s*"lscpu"\s*:\s*\[')
_TABLE = re.compile(r"^# (CPU,\S*)\s*$", re.MULTILINE)
_NAMED = re.compile(r"\s*Ar[a-z]*te[ck]tu[a-z]*\s*:\s")
_COUNT = re.compile(
    r"^(?:CPU|Processeur|Processore|Procesador)[^:\n]*:\s+\d+\s*$", re.MULTILINE
)


def sniff(raw: RawFile) -> bool:
    """Say whether it is an object ``lscpu``, its table, or fields from architecture."""
    head = raw.head
    if _JSON.match(head):
        return True
    if head.startswith("#"):
        return _TABLE.search(head) is not None
    return _NAMED.match(head) is not None and _COUNT.search(head) is not None


def load(raw: RawFile) -> Capture:
    """Read every field as a fact."""
    if _JSON.match(raw.head):
        fields = dict(_of_json(raw, json_value(raw)))
    elif raw.head.startswith("#"):
        return _capture(raw, _table(raw))
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


def _table(raw: RawFile) -> dict[str, object]:
    """Return the rows of ``-p`` by their columns; what is not told is left out."""
    header = _TABLE.search(raw.text)
    columns = header[1].split(",") if header else []
    rows: list[dict[str, str]] = []
    for number, line in lines(raw):
        if line.startswith("#"):
            continue
        values = line.strip().split(",")
        if len(values) != len(columns):
            problem = f"{len(values)} values for {len(columns)} columns"
            raise CaptureError(raw.path, problem, where=str(number))
        told = zip(columns, values, strict=True)
        rows.append({key: value for key, value in told if value})
    return {"number_of_cpus": len(rows), "topology": rows}
