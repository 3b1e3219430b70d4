"""ping of iputils in another language, brought to its English words.

iputils is translated since s20190709 (its ``po`` folder): the words and the decimal
mark are the language's, the order of the numbers is not. Only that order is used.
"""

import re
from typing import Final

_HEAD: Final = re.compile(
    r"^(PING \S{1,255} ?\([^)]{1,255}\)(?: \S+ \S+ \S+ ?:)?) (\d{1,6}\(\d{1,6}\))"
    r" (?!bytes of data)\w"
)
_REPLY: Final = re.compile(
    r"^(\[[\d.]+\] )?(\d{1,6}) [^\W\d]+ [^\W\d]+ (\S+(?: \(\S+\))?) ?: (icmp_seq=\d+)"
    r"( ttl=\d+)? [^\W\d]+([=<]) ?(\d[\d.,]*) ?(?:ms|мс|毫秒|ミリ秒)(.*)$"
)
_COUNTS: Final = re.compile(
    r"^(\d{1,15}) [^\d,]+, (\d{1,15}) [^\d,]+((?:, \+\d{1,15} [^\d,]+)*)"
    r", (\d{1,3}(?:[.,]\d+)?) ?% [^\d,]+(?:, [^\d,]+ (\d{1,15}) ?ms)?$"
)
_EXTRA: Final = re.compile(r"\+(\d{1,15}) ([^\d,]+)")
_RTT: Final = re.compile(r"^rtt [^\d=]+ = (\d[\d.,/]*) ?\w+(.*)$")
#: How the word for duplicates begins: Duplikate, doublons, duplicados.
_TWICE: Final = ("du", "do", "дуб", "重复")


def is_foreign(line: str) -> bool:
    """Say whether it is ping's first line or its counts in another language."""
    if _HEAD.match(line):
        return True
    return "packets transmitted" not in line and bool(_COUNTS.match(line))


def english(line: str) -> str:
    """Return the line with English words; one that is none of ping's as it is."""
    if head := _HEAD.match(line):
        return f"{head[1]} {head[2]} bytes of data."
    if reply := _REPLY.match(line):
        stamp, size, host, sequence, ttl, sign, time, rest = reply.groups(default="")
        again = " (DUP!)" if "DUP" in rest.upper() else ""
        return (
            f"{stamp}{size} bytes from {host}: {sequence}{ttl}"
            f" time{sign}{time.replace(',', '.')} ms{again}"
        )
    if counts := _COUNTS.match(line):
        return _counts(counts)
    if rtt := _RTT.match(line):
        return f"rtt min/avg/max/mdev = {rtt[1].replace(',', '.')} ms{rtt[2]}"
    return line


def _counts(match: re.Match[str]) -> str:
    extras = (
        f", +{one[1]} {'duplicates' if one[2].startswith(_TWICE) else 'errors'}"
        for one in _EXTRA.finditer(match[3].lower())
    )
    time = f", time {match[5]}ms" if match[5] else ""
    return (
        f"{match[1]} packets transmitted, {match[2]} received{''.join(extras)},"
        f" {match[4].replace(',', '.')}% packet loss{time}"
    )
