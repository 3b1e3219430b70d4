"""Read what ethtool tells of an interface in words or as JSON, as facts.

``ethtool eth0`` (link), ``-l`` (channels), ``-g`` (rings), ``-c`` (coalescing), ``-a``
(pause), ``-T`` (time stamps), ``-x`` (receive flow hash), ``--show-eee``,
``--show-fec`` and ``--show-priv-flags``: a title (``Ring parameters for eth0:``) and
lines ``key: value``. Facts: ``interface``, ``title`` and ``settings`` by the printed
key; below a line that is a key alone (``Pre-set maximums:``) the keys get it in front,
and lines that are no ``key: value`` (the capabilities of ``-T``) are its value. A value
of several lines is joined. ``-x`` has besides ``rx_rings``.

As JSON (``ethtool --json``) the keys are those of ethtool's own source
(``netlink/rings.c`` and its neighbours), ``title`` is that of the text by which of them
is there, and a list is joined with blanks. Where ethtool answers with an error only,
the error is told.
"""

import re
from collections.abc import Iterator
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import head_lines, json_value, lines
from patchstudy.records import Capture, RawFile

_KINDS: Final = (
    r"(?:Settings|EEE settings|Private flags"
    r"|(?:Channel|Ring|Coalesce|Pause|FEC|Time stamping) parameters) for (?P<name>\S+)"
    r"|RX flow hash indirection table for (?P<card>\S+) with (?P<rings>\d{1,9}) RX"
    r" ring\(s\)"
)
#: How a file begins that is of ethtool's settings and of nothing else.
OPENS = re.compile(rf"(?:{_KINDS}):[ \t]*\r?\n")
_TITLE = re.compile(rf"(?P<title>{_KINDS}):\s*")
_COMMAND = re.compile(r"\S*[#$>]\s*(ethtool\s.*\S)\s*")
_REFUSED = re.compile(
    r"(?:ethtool: .+|netlink error: .+|Cannot get .+|no data available)\s*",
    re.IGNORECASE,
)
_ROW = re.compile(r"\s*([^:\s][^:]*):(\s.*)?")
_JSON = re.compile(r'\s*\[\s*\{\s*"ifname"\s*:\s*"[^"]*"\s*,\s*"(?P<key>[\w-]+)"')
#: A key that only one kind of answer has as JSON -> the title of that kind as text.
_BY_KEY: Final = {
    "combined-max": "Channel parameters",
    "other-max": "Channel parameters",
    "rx-max": "Ring parameters",
    "tx-max": "Ring parameters",
    "adaptive-rx": "Coalesce parameters",
    "adaptive-tx": "Coalesce parameters",
    "rx-usecs": "Coalesce parameters",
    "tx-usecs": "Coalesce parameters",
    "rss-indirection-table": "RX flow hash indirection table",
    "rss-hash-key": "RX flow hash indirection table",
    "supported-ports": "Settings",
    "ptp-hardware-clock": "Time stamping parameters",
    "autonegotiate": "Pause parameters",
}


def sniff(raw: RawFile) -> bool:
    """Say whether it has a title of ethtool, its JSON, or is nothing but its error."""
    if _JSON.match(raw.head):
        return any(f'"{key}"' in raw.head for key in _BY_KEY)
    top = _without_command(head_lines(raw))
    return bool(top) and (
        _TITLE.fullmatch(top[0]) is not None or _REFUSED.fullmatch(top[0]) is not None
    )


def load(raw: RawFile) -> Capture:
    """Read every line, or every key, as a fact."""
    facts = _of_json(raw) if _JSON.match(raw.head) else _of_text(raw)
    return Capture(
        path=raw.path, sha256=raw.digest, tool="ethtool_settings", facts=facts
    )


def _of_text(raw: RawFile) -> dict[str, object]:
    rows = lines(raw)
    top = rows[1:] if _COMMAND.fullmatch(rows[0][1]) else rows
    titles = [
        match
        for _, line in top
        if not line[0].isspace() and (match := _TITLE.fullmatch(line))
    ]
    if not titles:
        problem = f"ethtool answered {top[0][1].strip()!r}; nothing is known from it"
        raise CaptureError(raw.path, problem)
    if len(titles) > 1:
        raise CaptureError(raw.path, "holds several answers of ethtool; split the file")
    title = titles[0]
    rings = {"rx_rings": int(title["rings"])} if title["rings"] else {}
    return {
        "interface": title["name"] or title["card"],
        "title": title["title"].partition(" for ")[0],
        **rings,
        "settings": _settings([line for _, line in top[1:]]),
    }


def _without_command(top: list[str]) -> list[str]:
    return top[1:] if top and _COMMAND.fullmatch(top[0]) else top


def _settings(rows: list[str]) -> dict[str, str]:
    """Return the values by key; errors between the lines are left out."""
    settings: dict[str, str] = {}
    section, last = "", "answer"
    for line in rows:
        if _REFUSED.fullmatch(line.strip()):
            continue
        match = _ROW.fullmatch(line)
        if match is None:
            settings[last] = f"{settings.get(last, '')} {line.strip()}".strip()
            continue
        value = (match[2] or "").strip()
        if not value and not line[0].isspace():
            section, last = f"{match[1]}: ", match[1]
            continue
        if not line[0].isspace() and section.removesuffix(": ") in settings:
            section = ""  # it had lines of its own, and is over
        last = section + match[1]
        settings[last] = " ".join(value.split())
    return settings


def _of_json(raw: RawFile) -> dict[str, object]:
    found = json_value(raw)
    if not (isinstance(found, list) and len(found) == 1 and isinstance(found[0], dict)):
        raise CaptureError(raw.path, "holds several answers of ethtool; split the file")
    told = dict(found[0])
    interface = str(told.pop("ifname", ""))
    return {
        "interface": interface,
        "title": next(title for key, title in _BY_KEY.items() if key in told),
        "settings": dict(_flat(told, "")),
    }


def _flat(told: dict[str, object], before: str) -> Iterator[tuple[str, str]]:
    """Yield key and value; the keys of an object in an object get its key in front."""
    for key, value in told.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}: ")
        elif isinstance(value, list):
            yield before + key, " ".join(map(_shown, value))
        else:
            yield before + key, _shown(value)


def _shown(value: object) -> str:
    """Return a value as ethtool prints it in words."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return "n/a" if value is None else str(value)
