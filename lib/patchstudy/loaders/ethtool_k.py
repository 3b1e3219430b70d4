"""Read ``ethtool -k``, as text or as JSON: the offloads of an interface, as facts.

``dump_features`` in netlink/features.c of ethtool. A feature is ``on`` or ``off``; it
is ``fixed`` where nobody can change it, and ``requested`` where somebody asked for
another state than it has. Facts: ``interface``, ``features`` (name to ``on`` or
``off``), ``fixed`` and ``requested`` (lists of names). Old ethtool prints the title
"Offload parameters for eth0:", and a line "Cannot get device ..." for what the driver
does not tell; such a feature is absent.
"""

import re
from dataclasses import dataclass

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import json_value, lines
from patchstudy.records import Capture, RawFile

#: How a file begins that is of ``ethtool -k`` and of nothing else.
OPENS = re.compile(r"Features for \S+:\r?\n")
_COMMAND = re.compile(r"\s*\S*[#$>]\s*(ethtool\s[^\n]*\S)\s*\n")
_TITLE = re.compile(r"\s*(?:Features|Offload parameters) for (\S+):\s*(?:\n|$)")
_JSON = re.compile(
    r'\s*\[\s*\{\s*"ifname"\s*:\s*"[^"]*"\s*,\s*"[\w-]+"\s*:\s*\{\s*"active"'
)
_REFUSED = re.compile(r"\s*(?:Cannot get device|netlink error: ).*")
_ROW = re.compile(
    r"\s*([\w.-]+(?: [\w.-]+)*): (on|off)(?: \[(fixed|(?:not )?requested.*)\])?\s*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Feature:
    """The state of one feature."""

    state: str
    fixed: bool
    requested: bool


def sniff(raw: RawFile) -> bool:
    """Say whether it has the title of features, or is a list of them."""
    return _title(raw) is not None or _JSON.match(raw.head) is not None


def load(raw: RawFile) -> Capture:
    """Read the state of every feature."""
    title = _title(raw)
    interface, features = (
        _of_json(raw) if title is None else (title[1], _of_text(raw, title.end()))
    )
    if not features:
        raise CaptureError(raw.path, "holds no feature; was it cut short?")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="ethtool_k",
        facts={
            "interface": interface,
            "features": {name: one.state for name, one in features.items()},
            "fixed": [name for name, one in features.items() if one.fixed],
            "requested": [name for name, one in features.items() if one.requested],
        },
    )


def _title(raw: RawFile) -> re.Match[str] | None:
    command = _COMMAND.match(raw.head)
    return _TITLE.match(raw.head, command.end() if command else 0)


def _of_text(raw: RawFile, start: int) -> dict[str, _Feature]:
    """Return the features of the lines behind the title."""
    features: dict[str, _Feature] = {}
    first = raw.head[:start].count("\n")
    for number, line in lines(raw):
        if number <= first or _REFUSED.fullmatch(line):
            continue
        match = _ROW.fullmatch(line)
        if match is None or match[1] in features:
            problem = f"{line.strip()!r} is not a new feature that is on or off"
            raise CaptureError(raw.path, problem, where=str(number))
        features[match[1]] = _Feature(
            state=match[2],
            fixed=match[3] == "fixed",
            requested="requested" in (match[3] or ""),
        )
    return features


def _of_json(raw: RawFile) -> tuple[str, dict[str, _Feature]]:
    """Return the interface and the features of the one object of the list."""
    value = json_value(raw)
    if not isinstance(value, list) or len(value) != 1 or not isinstance(value[0], dict):
        raise CaptureError(raw.path, "not the features of one interface; split it")
    told = dict(value[0])
    interface = str(told.pop("ifname", ""))
    return interface, {
        name: _of_object(raw, name, states) for name, states in told.items()
    }


def _of_object(raw: RawFile, name: str, states: object) -> _Feature:
    keys = ("active", "fixed", "requested")
    if not isinstance(states, dict) or not isinstance(states.get("active"), bool):
        raise CaptureError(raw.path, "not the state of a feature", where=name)
    active, fixed, requested = (states.get(key) for key in keys)
    return _Feature(
        state="on" if active else "off",
        fixed=fixed is True,
        requested=fixed is not True and requested is (not active),
    )
