"""Read ``ethtool -i``: driver, version, firmware and bus of an interface, as facts.

``dump_drvinfo`` of ethtool prints the driver's ``struct ethtool_drvinfo`` as lines
``key: value``; the keys are kept as printed, a value may hold blanks or be empty. The
interface is known only where the command line stands above (``# ethtool -i eth0``).
"""

import re

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import head_lines, lines
from patchstudy.records import Capture, RawFile

#: How a file begins that is of ``ethtool -i`` and of nothing else.
OPENS = re.compile(r"driver: [\w-]+\r?\nversion: ")
_COMMAND = re.compile(r"\S*[#$>]\s*(ethtool\s.*\S)\s*")
_DRIVER = re.compile(r"driver:(\s.*)?")
_KEYS = re.compile(r"^(version|firmware-version|bus-info):", re.MULTILINE)


def sniff(raw: RawFile) -> bool:
    """Say whether it begins with the driver, with another key of ethtool below."""
    top = head_lines(raw)
    if top and _COMMAND.fullmatch(top[0]):
        top = top[1:]
    return (
        bool(top) and bool(_DRIVER.fullmatch(top[0])) and bool(_KEYS.search(raw.head))
    )


def load(raw: RawFile) -> Capture:
    """Read every line as a fact."""
    rows = lines(raw)
    command = _COMMAND.fullmatch(rows[0][1])
    facts: dict[str, object] = {}
    for number, line in rows[1:] if command else rows:
        key, colon, value = line.strip().partition(":")
        if not colon or key in facts:
            problem = f"{line.strip()!r} is not a new key, a colon and a value"
            raise CaptureError(raw.path, problem, where=str(number))
        facts[key] = value.strip()
    interface = {"interface": command[1].split()[-1]} if command else {}
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="ethtool_i",
        command=command[1] if command else None,
        facts={**interface, **facts},
    )
