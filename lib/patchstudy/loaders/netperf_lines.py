"""Lines of netperf's output, its banner, its failures and its interim results.

Parts of the loader ``netperf``, which its text and its omni output share.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from patchstudy.loaders.paste import unindented

#: Title in the banner -> name of the test.
TESTS: Final = {
    "TCP STREAM": "TCP_STREAM",
    "TCP MAERTS": "TCP_MAERTS",
    "TCP SENDFILE": "TCP_SENDFILE",
    "SCTP STREAM": "SCTP_STREAM",
    "SCTP 1-TO-1 STREAM": "SCTP_STREAM",
    "SCTP 1-TO-MANY STREAM": "SCTP_STREAM",
    "UDP STREAM": "UDP_STREAM",
    "UDP UNIDIRECTIONAL SEND": "UDP_STREAM",
    "TCP REQUEST/RESPONSE": "TCP_RR",
    "UDP REQUEST/RESPONSE": "UDP_RR",
    "TCP Connect/Request/Response": "TCP_CRR",
    "TCP Connect/Close": "TCP_CC",
}
#: Of netperf 2.4 and later; 2.1 to 2.3 have only ``to`` and a name.
BANNER: Final = re.compile(
    r"^(?:MIGRATED )?(?:(\S[\w/ -]{2,50}) TEST from \S+ .*\bAF_\w+ to .*\bAF_\w+(.*)"
    rf"|({'|'.join(map(re.escape, TESTS))}) TEST to \S+( : .*)?)$"
)
OMNI: Final = re.compile(r"^(OMNI .+) TEST from \S+ .*\bAF_\w+ to .*\bAF_\w+(.*)$")
FAILED: Final = re.compile(
    r"^(?:establish[_ ]control\b|(?:recv|send)_(?:response|request|data)\w*: "
    r"|netperf: |resolve_host: could not "
    r"|The test you requested \(.*is unknown to this netperf)"
)
_BEGINS: Final = re.compile(
    r"(?<![\w/-])(?:MIGRATED )?[\w/-]+(?: [\w/-]+){0,3} TEST from "
)
_WRAPPED: Final = re.compile(r"\S+ \(")
_INTERIM: Final = re.compile(
    r"^Interim result:\s+(\d{1,15}\.\d+) (\S+) over (\d{1,15}\.\d+) seconds"
    r" ending at (\d{1,15}\.\d+)"
)
#: The same where the output is CSV (``-D`` with ``-o``).
_INTERIM_CSV: Final = re.compile(
    r"^(\d{1,15}\.\d+),([^,\s]+/s),(\d{1,15}\.\d+),(\d{9,15}\.\d+)$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interim:
    """One interim result (``-D``).

    Attributes
    ----------
    value, unit
        As printed.
    length_s, end_s
        How long it is, and when it ended, in seconds since 1970.
    """

    value: float
    unit: str
    length_s: float
    end_s: float


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, without what mails and pages do to them.

    A banner that was broken behind its ``to`` has the number of its second line.
    """
    if " TEST from " in text:
        text = unindented(text.replace("\\_", "_"), _BEGINS)
    number, before = 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        bare = re.sub(r"^(?:> ?)+", "", line)
        if before and _WRAPPED.match(bare):
            bare, before = f"{before} {bare}", ""
        if before:
            yield number - 1, before
            before = ""
        if " TEST from " in bare and bare.endswith((" to", " to ")):
            before = bare.rstrip()
        else:
            yield number, bare
    if before:
        yield number, before


def title(banner: re.Match[str]) -> tuple[str, str]:
    """Return the name of the test and the rest of its banner."""
    return banner[1] or banner[3], banner[2] or banner[4] or ""


def interim(line: str) -> Interim | None:
    """Return the interim result that a line is, if it is one."""
    match = _INTERIM.match(line) or _INTERIM_CSV.match(line)
    if not match:
        return None
    value, unit, length_s, end_s = match.groups()
    return Interim(
        value=float(value), unit=unit, length_s=float(length_s), end_s=float(end_s)
    )


def interims(lines: Sequence[tuple[int, str]]) -> list[Interim]:
    """Return the interim results among the lines."""
    found = (interim(line) for _number, line in lines)
    return [one for one in found if one]


def spans(results: Sequence[Interim]) -> list[tuple[float, float]]:
    """Return start and end of each, in s from the start of the first."""
    if not results:
        return []
    origin = _origin(results)
    return [
        (max(one.end_s - one.length_s - origin, 0.0), one.end_s - origin)
        for one in results
    ]


def started_at(results: Sequence[Interim]) -> str | None:
    """Return when the first interim result began, in UTC."""
    if not results or not 1e9 < _origin(results) < 2**36:
        return None
    moment = datetime.fromtimestamp(int(_origin(results)), tz=UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _origin(results: Sequence[Interim]) -> float:
    return results[0].end_s - results[0].length_s
