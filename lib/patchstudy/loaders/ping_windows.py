"""Read ping of Windows, in any language: only numbers and their order are read.

What the values are (documentation of ``ping`` and its printed form; the words come from
the language of the system, the order of the numbers does not change):

``loss``
    Requests without an echo reply, of ``Sent``. ``Received`` of the summary also counts
    the answers of routers ("Destination host unreachable"), so where it exceeds the
    printed replies, the replies count and a caveat says so.
``rtt_mean``
    The mean of the printed replies, whole milliseconds; absent where one is only told
    to be less (``time<1ms``).
``rtt_p50``
    Over the same, 20 at least.

All values are of the whole run. ping writes no date.
"""

import re
from statistics import fmean, median
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading
from patchstudy.records import Capture, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "loss": "1 - replies with a time / the first number of the summary (Sent)",
    "rtt_mean": "the mean of the times of all replies",
}
_HEAD: Final = re.compile(r"^\S.* \d{1,5} .*[:\uff1a]$")
_REPLY: Final = re.compile(
    r"^(?=\S[^=<]*[:\uff1a])[^=<]++(?:=\d{1,5} [^=<]++)?"
    r"(?P<sign>[=<]) ?(?P<time>\d{1,9}) ?[^\d\s=]{1,5}(?: TTL=\d{1,3})?$"
)
_COMMA: Final = r"[,\uff0c\u3001]"
_COUNTS: Final = re.compile(
    rf"^\s*\S[^=]*= ?(\d{{1,12}}){_COMMA}[^=]*= ?(\d{{1,12}}){_COMMA}"
    r"[^=]*= ?(\d{1,12})\b"
)
#: A number is told, as in a reply.
_TOLD: Final = re.compile(r"[=<] ?\d")
_TTL: Final = re.compile(r"[=<] ?\d{1,9} ?\S{1,5} TTL=\d{1,3}$")
_ENOUGH_FOR_P50: Final = 20
_MS: Final = 1e-3


def sniff(raw: RawFile) -> bool:
    """Say whether a first line with the size is followed by replies or counts."""
    lines = [line for line in plain_head(raw) if not line.endswith(">")][:12]
    heads = [at for at, line in enumerate(lines) if _HEAD.match(line)]
    if not heads:
        return False
    rest = lines[heads[0] + 1 :]
    return any(_TTL.search(line) or _COUNTS.match(line) for line in rest)


def load(raw: RawFile) -> Capture:
    """Read the output of one ping.

    Raises
    ------
    CaptureError
        If the counts are missing or cannot be, or if there are several.
    """
    lines = [(number, line) for number, line in plain(raw.text) if line.strip()]
    found = [
        (number, match) for number, line in lines if (match := _COUNTS.match(line))
    ]
    if not found:
        raise CaptureError(raw.path, "ping's summary is missing; was it cut short?")
    if len(found) > 1:
        problem = "several pings in one file; save each in a file of its own"
        raise CaptureError(raw.path, problem)
    where, counts = found[0]
    sent, received, lost = (int(text) for text in counts.groups())
    if received + lost != sent:
        problem = f"{received} received and {lost} lost are not {sent} sent"
        raise CaptureError(raw.path, problem, where=str(where))
    replies, others = _replies(raw, [one for one in lines if one[0] < where])
    if len(replies) > received or len(replies) + others < sent:
        problem = f"{len(replies)} replies and {others} other lines, {received} counted"
        raise CaptureError(raw.path, problem, where=str(where))
    reading = Reading()
    _loss(sent, received, len(replies), reading)
    _times(replies, reading)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="ping",
        workload={"protocol": "ICMP", "streams": 1, "packets": sent},
        measurements=tuple(reading.measurements),
        facts={"system": "Windows", "packets_received": received},
        caveats=tuple(reading.caveats),
    )


def _replies(
    raw: RawFile, lines: list[tuple[int, str]]
) -> tuple[list[re.Match[str]], int]:
    """Return the replies, and how many lines tell of a request without one."""
    heads = [at for at, (_number, line) in enumerate(lines) if _HEAD.match(line)]
    replies: list[re.Match[str]] = []
    others = 0
    for number, line in lines[heads[0] + 1 :] if heads else []:
        match = _REPLY.match(line)
        if match:
            replies.append(match)
        elif _TOLD.search(line):
            problem = f"{line[:60]!r} is no reply as ping prints it"
            raise CaptureError(raw.path, problem, where=str(number))
        else:
            others += 1
    return replies, others - 1  # the title of the summary


def _loss(sent: int, received: int, replies: int, reading: Reading) -> None:
    """Add the loss; doubt it where something else than replies was counted."""
    if sent == 0:
        reading.doubt("loss-absent", "ping sent nothing; loss is absent")
        return
    reading.loss(sent - replies, sent)
    if replies < received:
        reading.doubt(
            "ping-errors",
            f"{received - replies} of {received} counted answers are no echo replies;"
            " such packets count as lost",
            "read the file for the reason: unreachable?",
        )


def _times(replies: list[re.Match[str]], reading: Reading) -> None:
    """Add mean and median of the round trips."""
    if not replies:
        reading.note("rtt-absent", "ping printed no answer; round trips are absent")
        return
    if any(one["sign"] == "<" for one in replies):
        reading.doubt(
            "rtt-absent",
            "round trips below 1 ms are told as such only; their mean is absent",
            "use another tool for so short round trips",
        )
        return
    times = [int(one["time"]) for one in replies]
    reading.whole("rtt_mean", fmean(times) * _MS, resolution=_MS)
    if len(times) >= _ENOUGH_FOR_P50:
        reading.whole("rtt_p50", median(times) * _MS, resolution=_MS)
