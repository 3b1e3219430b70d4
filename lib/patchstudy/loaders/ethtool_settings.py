"""Read what ethtool tells of an interface in words: link, rings, channels, coalescing.

``ethtool eth0``, ``-l``, ``-g``, ``-c`` and ``-a``: a title (``Settings for eth0:``,
``Ring parameters for eth0:``) and lines ``key: value`` of the kernel's ethtool netlink
interface. Facts: ``interface``, ``title`` and ``settings`` by the printed key; below a
line that is a key alone (``Pre-set maximums:``) the keys get it in front. A value of
several lines is joined. Where ethtool answers with an error only, the error is told.
"""

import re

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import head_lines, lines
from patchstudy.records import Capture, RawFile

#: How a file begins that is of ethtool's settings and of nothing else.
OPENS = re.compile(
    r"(?:Settings|(?:Channel|Ring|Coalesce|Pause) parameters) for \S+:[ \t]*\r?\n"
)
_COMMAND = re.compile(r"\S*[#$>]\s*(ethtool\s.*\S)\s*")
_TITLE = re.compile(
    r"((?:Settings|(?:Channel|Ring|Coalesce|Pause) parameters) for) (\S+):\s*"
)
_REFUSED = re.compile(
    r"(?:ethtool: .+|netlink error: .+|Cannot get .+|no data available)\s*",
    re.IGNORECASE,
)
_ROW = re.compile(r"\s*([^:\s][^:]*):(\s.*)?")


def sniff(raw: RawFile) -> bool:
    """Say whether it has a title of ethtool or is nothing but its error."""
    top = _without_command(head_lines(raw))
    return bool(top) and (
        _TITLE.fullmatch(top[0]) is not None or _REFUSED.fullmatch(top[0]) is not None
    )


def load(raw: RawFile) -> Capture:
    """Read every line as a fact."""
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
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="ethtool_settings",
        facts={
            "interface": titles[0][2],
            "title": titles[0][1].removesuffix(" for"),
            "settings": _settings([line for _, line in top[1:]]),
        },
    )


def _without_command(top: list[str]) -> list[str]:
    return top[1:] if top and _COMMAND.fullmatch(top[0]) else top


def _settings(rows: list[str]) -> dict[str, str]:
    """Return the values by key; errors between the lines are left out."""
    settings: dict[str, str] = {}
    section, last = "", ""
    for line in rows:
        if _REFUSED.fullmatch(line.strip()):
            continue
        match = _ROW.fullmatch(line)
        if match is None:
            settings[last] = f"{settings.get(last, '')} {line.strip()}".strip()
            continue
        value = (match[2] or "").strip()
        if not value and not line[0].isspace():
            section = f"{match[1]}: "
            continue
        last = section + match[1]
        settings[last] = " ".join(value.split())
    return settings
