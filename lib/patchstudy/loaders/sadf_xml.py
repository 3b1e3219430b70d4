"""The XML of ``sadf -x`` as the object that ``sadf -j`` prints of the same data.

xml_stats.c and rndr_stats.c of sysstat: an element a table, an attribute a column; a
CPU is ``number`` instead of ``cpu``, a row of interrupts stands in ``int-global`` with
an element a CPU. Only what a metric comes from is kept of a table; of the others
the name.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any, Final

from patchstudy.errors import CaptureError
from patchstudy.records import RawFile

_ENTITY: Final = re.compile(r"<!ENTITY|<!DOCTYPE[^>]*\[")
_SPACE: Final = re.compile(r"^\{[^}]*\}")
_NUMBER: Final = re.compile(r"-?\d{1,15}(?:[.,]\d{1,4})?")
_HOST: Final = ("sysname", "release", "machine")
_TABLES: Final = frozenset({"net-dev", "net-edev", "softnet"})
_IDS: Final = {"number": "cpu", "iface": "iface"}


def as_json(raw: RawFile) -> dict[str, Any]:
    """Return the object of the JSON: hosts with statistics and restarts.

    Raises
    ------
    CaptureError
        If it is not the XML of sadf, or declares entities.
    """
    if _ENTITY.search(raw.text):
        raise CaptureError(raw.path, "declares entities; not the XML of sadf")
    try:
        root = ET.fromstring(raw.data)
    except (ET.ParseError, ValueError, LookupError) as error:
        problem = f"not sadf's XML ({error}); was it cut short?"
        raise CaptureError(raw.path, problem) from error
    for one in root.iter():
        one.tag = _SPACE.sub("", str(one.tag))
    return {"sysstat": {"hosts": [_host(one) for one in root.iter("host")]}}


def _host(host: ET.Element) -> dict[str, Any]:
    cpus = (host.findtext("number-of-cpus") or "").strip()
    return {
        "nodename": host.get("nodename", ""),
        **{name: host.findtext(name) for name in _HOST if host.findtext(name)},
        **({"number-of-cpus": int(cpus)} if cpus.isdecimal() else {}),
        "statistics": [_record(one) for one in host.iter("timestamp")],
        "restarts": [{"boot": dict(one.attrib)} for one in host.iter("boot")],
    }


def _record(stamp: ET.Element) -> dict[str, Any]:
    told: dict[str, Any] = dict(stamp.attrib)
    if "utc" in told:
        told["utc"] = int(told["utc"] == "1")
    tables: dict[str, Any] = {"timestamp": told}
    for one in stamp:
        if one.tag == "network":
            tables["network"] = dict(_network(one))
        elif one.tag == "interrupts":
            tables["interrupts"] = list(_interrupts(one))
        elif one.tag == "cpu-load":
            tables["cpu-load"] = [_row(row) for row in one]
        elif one.tag == "process-and-context-switch":
            tables[one.tag] = _row(one)
        else:
            tables[one.tag] = None
    return tables


def _network(network: ET.Element) -> Iterator[tuple[str, Any]]:
    """Yield the tables of interfaces and the softnet queue, and the others' names."""
    for tag in dict.fromkeys(one.tag for one in network):
        rows = [_row(one) for one in network.iter(tag) if _is_row(one)]
        yield tag, rows if tag in _TABLES else None


def _is_row(one: ET.Element) -> bool:
    return not _IDS.keys().isdisjoint(one.attrib) or "cpu" in one.attrib


def _interrupts(table: ET.Element) -> Iterator[dict[str, Any]]:
    """Yield the sum of all interrupts; its CPU is not told in old versions."""
    for one in table.iter("irq"):
        if one.get("intr") == "sum" and one.get("cpu", "all") == "all":
            yield {"intr": "sum", "all": _number(one.get("value", ""))}


def _row(row: ET.Element) -> dict[str, Any]:
    """Return the columns; what names the row stays text."""
    return {
        _IDS.get(name, name): text if name in _IDS or name == "cpu" else _number(text)
        for name, text in row.attrib.items()
        if name != "per"
    }


def _number(text: str) -> float | str:
    """Return a number; what is none is kept, for the error that names it."""
    return float(text.replace(",", ".")) if _NUMBER.fullmatch(text) else text
