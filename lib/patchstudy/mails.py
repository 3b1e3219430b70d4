"""Numbers in a patch mail: before and after, as claims for a person to confirm.

Nothing is invented: what is not recognised is handed back as it stands. Output of
netperf, iperf and the like that is pasted under "before" and "after" is read by the
loaders.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from patchstudy import patchfile
from patchstudy.errors import CaptureError, printable
from patchstudy.loaders import LOADERS
from patchstudy.metrics import Better, metric
from patchstudy.patchfile import Patch
from patchstudy.printed import ABOUT
from patchstudy.records import Capture, Measurement, RawFile
from patchstudy.units import prefix

#: Tools whose pasted output is looked for.
TOOLS: Final = (
    "netperf", "iperf3_text", "iperf2", "iperf3", "sockperf", "wrk", "h2load", "ping",
    "fping", "qperf", "nuttcp", "uperf",
)  # fmt: skip
#: Units as mails write them, and as ``patchstudy.units`` does.
_UNITS: Final = (
    (r"[Gg](?:bits?/s(?:ec)?|bps|b/s(?:ec)?)", "Gbit/s"),
    (r"[Mm](?:bits?/s(?:ec)?|bps|b/s(?:ec)?)", "Mbit/s"),
    (r"[Kk](?:bits?/s(?:ec)?|bps|b/s(?:ec)?)", "kbit/s"),
    (r"10\^6\s?bits/s(?:ec)?", "Mbit/s"),
    (r"GB(?:ytes?)?/s(?:ec)?", "GB/s"),
    (r"MB(?:ytes?)?/s(?:ec)?", "MB/s"),
    (r"[Kk]B(?:ytes?)?/s(?:ec)?", "kB/s"),
    (r"[Mm](?:pps|pkts?/s(?:ec)?|packets?/s(?:ec)?)", "Mpacket/s"),
    (r"[Kk](?:pps|pkts?/s(?:ec)?|packets?/s(?:ec)?)", "kpacket/s"),
    (r"(?:pps|pkts?/s(?:ec)?|packets?/s(?:ec)?)", "packet/s"),
    (r"(?:trans|transactions|req|requests)/s(?:ec)?|[tr]ps", "1/s"),
    (r"ms(?:ecs?)?", "ms"),
    (r"(?:us|usecs?|[µμ]s)", "us"),
    (r"ns(?:ecs?)?", "ns"),
    (r"s(?:ecs?|econds?)?", "s"),
)
_UNIT: Final = "|".join(pattern for pattern, _ in _UNITS)
_LOOSE: Final = rf"(?:{ABOUT}|under|over|up to|the expected|the)"
_NUM: Final = r"\d[\d,]{0,24}(?:\.\d{1,12})?"
_ONE: Final = rf"((?:{_LOOSE}\s*)*)({_NUM})\s?({_UNIT})?(?![\w/%])"
_PAIRS: Final = (
    re.compile(rf"(?i:\bfrom)\s+{_ONE}(?:\s[^\d.;:]{{0,40}}?)?\s+to\s+{_ONE}"),
    re.compile(rf"{_ONE}\s*(?:-+>|=+>|→)\s*{_ONE}"),
    re.compile(
        rf"(?i:\b(?:before|without)\b)[^\d.;]{{0,30}}?{_ONE}"
        rf"[^\d.]{{0,30}}?(?i:\b(?:after|with)\b)[^\d.;]{{0,30}}?{_ONE}"
    ),
    re.compile(rf"{_ONE}\s+(?i:before)\b[^\d.]{{0,40}}?{_ONE}\s+(?i:after)\b"),
)
_PERCENT: Final = re.compile(rf"({ABOUT}\s*+)?(\+|-|(?<!\d))({_NUM})\s?%")
_TIMES: Final = re.compile(
    rf"(?i)({ABOUT}\s*)?\b({_NUM})\s?(?:x|times)\s+(faster|higher|more)"
)
_UP: Final = re.compile(
    r"(?i)\b(?:increas\w*|improv\w*|bump\w*|faster|higher|gain\w*|rais\w*|rises?|boost\w*"
    r"|speeds? up|up)\b"
)
_DOWN: Final = re.compile(
    r"(?i)\b(?:decreas\w*|reduc\w*|drop\w*|slower|lower\w*|less|fewer|falls?|regress\w*"
    r"|worse|down)\b"
)
_LABEL: Final = re.compile(
    r"(?i)^\W*(?:(?P<base>before|without|baseline|unpatched|vanilla|original)"
    r"|(?P<new>after|with|patched))\b[^\n]{0,60}:\s*$"
)
_ROW: Final = re.compile(r"^\s*\[\s*(?:\d+|SUM)\]|^(?=[\s.]*\d)[\s\d.]*+$")
_HEAD_BASE: Final = re.compile(
    r"(?i)\b(?:before|baseline|base|unpatched|old|vanilla)\b"
)
_HEAD_NEW: Final = re.compile(r"(?i)\b(?:after|patched|new)\b")
_PERSONAL: Final = re.compile(
    r"^(?:On .*wrote:|\S.*\(\d+\):|[A-Z][\w-]*-by: .*|Cc: .*|(?:From|To|Date): .*"
    r"|[-\w]+ <\S+@\S+>.*|(?:Thanks|Thx|Hi|Dear|Hello)\b.*)$"
)
_STAT: Final = re.compile(
    r"^ \S.*\|\s+(?:\d+ [-+]*|Bin.*)$|^ \d+ files? changed|^ (?:create|delete) mode"
    r"|^ rename "
)
#: An address, with the name before it.
_ADDRESS: Final = re.compile(
    r"(?:[A-Z][\w.'-]{0,60}\s{1,9}){1,4}<[^\s@]+@\S+>|(?<!\S)\S+@\S+"
)
#: A number; not a digit inside a name (lan78xx), a link or the name of a commit.
_DIGIT: Final = re.compile(r"(?<![A-Za-z_\d])\d")
_NAMES: Final = re.compile(r"https?://\S+|\b(?=\w*[a-f])[0-9a-f]{12,40}\b")
#: Words of quantities that a percentage may be of, and no metric here is meant by.
_OTHERWISE: Final = re.compile(
    r"(?i)\b(?:cpu|idle|loss|lost|memory|utili[sz]\w*|load|cycles?|cache|power|up to)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One before/after statement, in the words of ``[[claims]]``.

    Attributes
    ----------
    quote
        Lines of the mail that it comes from.
    metric
        The likely metric; a person has to confirm it.
    change, baseline, patched
        As ``study.toml`` takes them; empty where the mail does not say.
    notes
        What to look at before it is confirmed.
    """

    quote: tuple[str, ...]
    metric: str
    change: str
    baseline: str
    patched: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """All numbers of a mail: recognised, and the other lines that hold one."""

    said: tuple[Said, ...]
    rest: tuple[str, ...]


def told(patches: Iterable[Patch]) -> Told:
    """Collect the numbers of all messages of a patch file, in their order.

    Quoted lines of replies, diffs, trailers and lines that name people are left out.
    """
    said: list[Said] = []
    rest: list[str] = []
    for patch in patches:
        one = _message(patch)
        said += one.said
        rest += one.rest
    return Told(said=tuple(dict.fromkeys(said)), rest=tuple(dict.fromkeys(rest)))


def _message(patch: Patch) -> Told:
    lines = list(_own_lines(patch))
    said: list[Said] = []
    used: set[int] = set()
    for one, numbers in [*_outputs(lines), *_tables(lines)]:
        if not used & numbers:
            said.append(one)
            used |= numbers
    rest: list[str] = []
    for sentence in _sentences(lines, used):
        found = _sentence(sentence)
        if found is not None:
            said.append(found)
        elif _numbered(sentence):
            rest.append(sentence)
    return Told(said=tuple(_with_inputs(said)), rest=tuple(rest))


def _numbered(text: str) -> bool:
    return _DIGIT.search(_NAMES.sub("", text)) is not None


def _own_lines(patch: Patch) -> Iterator[str]:
    """Yield the lines that the writer wrote, without people."""
    text = patchfile.message_of(patch)
    if patch.subject_from == "first line" and patch.subject:
        text = text.lstrip().partition("\n")[2]
    trailers = {line.split(" ")[0] for line in patch.trailers}
    for line in text.expandtabs(8).split("\n"):
        quoted = patch.reply and line.startswith(">")
        personal = _PERSONAL.match(line.strip()) or line.split(" ")[0] in trailers
        if not (quoted or personal or _STAT.match(line)):
            yield printable(_ADDRESS.sub("...", line.rstrip()))


# ---- pasted output ------------------------------------------------------------------


def _outputs(lines: Sequence[str]) -> Iterator[tuple[Said, set[int]]]:
    """Yield what the loaders read under "before" and "after"."""
    labels = [
        (at, found) for at, line in enumerate(lines) if (found := _LABEL.match(line))
    ]
    blocks = [
        (bool(found["base"]), at, _captured(lines, at + 1, end))
        for (at, found), (end, _) in pairwise([*labels, (len(lines), None)])
        if found
    ]
    for (base, at, first), (other, _, second) in pairwise(blocks):
        if not (base and not other and first and second):
            continue
        used = {*range(at, first[1]), *range(second[2] - 1, second[1])}
        quote = tuple(lines[x] for x in sorted(used) if _numbered(lines[x]))
        for number, one in enumerate(_differences(first[0], second[0])):
            yield replace(one, quote=() if number else quote), set() if number else used


def _captured(
    lines: Sequence[str], start: int, end: int
) -> tuple[Capture, int, int] | None:
    """Load what stands between two lines; return where it ends and began."""
    rows = [at for at in range(start, end) if _ROW.match(lines[at])]
    if not rows:
        return None
    last = rows[-1] + 1
    text = "\n".join(lines[start:last]).strip("\n") + "\n"
    raw = RawFile.of(Path("mail.txt"), text.encode("utf-8"))
    for name in TOOLS:
        try:
            if LOADERS[name].sniff(raw):
                capture = LOADERS[name].load(raw)
                return None if capture.error else (capture, last, start)
        except CaptureError:
            continue
    return None


def _differences(base: Capture, new: Capture) -> Iterator[Said]:
    """Yield a statement for each metric with a direction that both outputs hold."""
    news = {(one.metric, *sorted(one.labels.items())): one for one in _whole(new)}
    lengths = [x.workload.get("duration_s") for x in (base, new)]
    note = f"the two tests lasted {lengths[0]} and {lengths[1]} s"
    for one in _whole(base):
        other = news.get((one.metric, *sorted(one.labels.items())))
        if other is not None:
            yield Said(
                quote=(),
                metric=one.metric,
                change=f"{_printed(one)} -> {_printed(other)}",
                baseline="",
                patched="",
                notes=(note,) if lengths[0] != lengths[1] else (),
            )


def _whole(capture: Capture) -> Iterator[Measurement]:
    for one in capture.measurements:
        directed = metric(one.metric).better is not Better.NEITHER
        if one.start_s is None and directed:
            yield one


def _printed(one: Measurement) -> str:
    """Write a value with the digits that the tool printed."""
    unit = metric(one.metric).unit
    if unit == "1" or one.resolution is None:
        return f"{one.value:g}" if unit == "1" else f"{one.value:g} {unit}"
    scale, shown = prefix(max(abs(one.value), one.resolution), unit)
    while one.resolution > scale * (1 + 1e-9):
        scale, shown = prefix(scale * 1000, unit)
    decimals = max(0, round(-math.log10(one.resolution / scale)))
    return f"{one.value / scale:.{decimals}f} {shown}"


# ---- tables -------------------------------------------------------------------------


def _tables(lines: Sequence[str]) -> Iterator[tuple[Said, set[int]]]:
    """Yield the rows of tables whose head names before and after, with their unit."""
    at = 0
    while at < len(lines):
        head = _cells(lines[at])
        columns = _columns(head)
        at += 1
        if columns is None:
            continue
        while at < len(lines) and lines[at].strip():
            cells = _cells(lines[at])
            found = len(cells) == len(head) and _row(cells, head, columns)
            if found:
                yield replace(found, quote=(lines[at],)), {at}
            at += 1


def _cells(line: str) -> list[str]:
    if "|" in line:
        return [one.strip() for one in line.strip().strip("|").split("|")]
    return [one for one in re.split(r"\s{2,}", line.strip()) if one]


def _columns(head: Sequence[str]) -> tuple[int, int] | None:
    base = [at for at, one in enumerate(head) if _HEAD_BASE.search(one)]
    new = [at for at, one in enumerate(head) if _HEAD_NEW.search(one)]
    return (base[0], new[0]) if len(base) == len(new) == 1 and base != new else None


def _row(
    cells: Sequence[str], head: Sequence[str], columns: tuple[int, int]
) -> Said | None:
    """Return the statement of one row; None where no unit or metric is known."""
    sides = [cells[at] for at in columns]
    words = " ".join([*(head[at] for at in columns), cells[0]])
    named = re.search(rf"(?<![\w/])(?:{_UNIT})(?![\w/])", words)
    values = [re.fullmatch(rf"({_NUM})\s*({_UNIT})?", one) for one in sides]
    if not (values[0] and values[1]):
        return None
    units = [one[2] or (named and named[0]) for one in values if one]
    if not all(units):
        return None
    texts = [
        f"{one[1].replace(',', '')} {_unit(unit)}"
        for one, unit in zip(values, units, strict=True)
        if one and unit
    ]
    name = _metric_of(_unit(str(units[0])), cells[0])
    return _statement(name, f"{texts[0]} -> {texts[1]}", ())


# ---- prose --------------------------------------------------------------------------


def _sentences(lines: Sequence[str], used: set[int]) -> Iterator[str]:
    """Yield sentences of prose, and lines of anything that is laid out."""
    prose: list[str] = []
    for at, line in enumerate([*lines, ""]):
        gaps = len(re.findall(r"[^\s.,:;!?]\s{2,}\S", line))
        laid_out = gaps > 0 or "|" in line or line[:1] in {" ", "[", ">", "$", "#"}
        if at in used or laid_out or not line.strip():
            yield from _split(prose)
            prose = []
            if at not in used and laid_out and line.strip():
                yield line
        else:
            prose.append(line.strip())


def _split(prose: Sequence[str]) -> Iterator[str]:
    text = " ".join(prose)
    yield from (one for one in re.split(r"(?<=[.!?])\s+(?=[A-Z~(\d])", text) if one)


def _sentence(text: str) -> Said | None:
    for pattern in _PAIRS:
        if (found := pattern.search(text)) and (said := _pair(found, text)):
            return said
    if found := _TIMES.search(text):
        name = _metric_in(text)
        change = f"{_about(found[1])}{found[2].replace(',', '')}x"
        return _statement(name, change, (text,))
    return _percentage(text)


def _pair(found: re.Match[str], text: str) -> Said | None:
    """Return the statement of two values, where one of them at least has a unit."""
    first, second = found.groups()[:3], found.groups()[3:6]
    units = [first[2] or second[2], second[2] or first[2]]
    if not all(units):
        return None
    ends = [
        f"{_about(one[0])}{one[1].replace(',', '')} {_unit(unit)}"
        for one, unit in zip((first, second), units, strict=True)
    ]
    name = _metric_of(_unit(units[0]), text)
    bounds = re.search(r"(?i)\b(?:under|over|up to)\b", first[0] + second[0])
    notes = (f"the mail says {bounds[0]!r}; here it is 'about'",) if bounds else ()
    said = _statement(name, " -> ".join(ends), (text,))
    return said and replace(said, notes=notes)


def _percentage(text: str) -> Said | None:
    """Return the statement of one percentage with a direction and a metric."""
    found = list(_PERCENT.finditer(text))
    name = _metric_in(text)
    up, down = _UP.search(text), _DOWN.search(text)
    if len(found) != 1 or not name or _OTHERWISE.search(text):
        return None
    about, sign, number = found[0].groups()
    if not sign and bool(up) is bool(down):
        return None
    sign = sign or ("+" if up else "-")
    change = f"{_about(about)}{sign}{number.replace(',', '')} %"
    return _statement(name, change, (text,))


def _statement(name: str, change: str, quote: tuple[str, ...]) -> Said | None:
    """Return a statement; None where no metric is known."""
    if not name:
        return None
    return Said(
        quote=quote, metric=name, change=change, baseline="", patched="", notes=()
    )


def _about(words: str | None) -> str:
    loose = re.search(rf"(?i){ABOUT}|under|over|up to", words or "")
    return "about " if loose else ""


def _unit(text: str) -> str:
    """Return a unit of a mail as ``patchstudy.units`` writes it."""
    return next(name for pattern, name in _UNITS if re.fullmatch(pattern, text))


def _metric_of(unit: str, text: str) -> str:
    """Return the likely metric of a value in this unit; empty where none is likely."""
    if unit in {"Gbit/s", "Mbit/s", "kbit/s", "GB/s", "MB/s", "kB/s"}:
        return "throughput"
    if unit.endswith("packet/s"):
        return "packet_rate"
    if unit == "1/s":
        return "transaction_rate"
    return _time_in(text)


def _time_in(text: str) -> str:
    if re.search(r"(?i)\balloc\w*", text):
        return "alloc_time"
    return (
        "rtt_mean" if re.search(r"(?i)\b(?:latency|rtt|ping|round.trip)", text) else ""
    )


def _metric_in(text: str) -> str:
    """Return the metric that a sentence names in words; empty where it does not."""
    for pattern, name in (
        (r"packet processing|packet rate|packets per second|pps\b", "packet_rate"),
        (r"latency|rtt\b|round.trip", "rtt_mean"),
        (r"retransmi", "retransmits"),
        (r"throughput|bandwidth|speed|bitrate|bit rate|NAT|performance", "throughput"),
    ):
        if re.search(rf"(?i)\b(?:{pattern})", text):
            return name
    return ""


def _with_inputs(said: Sequence[Said]) -> Iterator[Said]:
    """Give a percentage or a factor the only two values that the message has for it."""
    pairs = [one for one in said if " -> " in one.change]
    for one in said:
        fits = [x for x in pairs if _alike(x.metric, one.metric)]
        if " -> " in one.change or len(fits) != 1:
            yield one
            continue
        base, new = fits[0].change.split(" -> ")
        yield replace(
            one,
            metric=fits[0].metric,
            baseline=base,
            patched=new,
            notes=(*one.notes, "was it worked out from these two values?"),
        )


def _alike(one: str, other: str) -> bool:
    rates = {"throughput", "packet_rate"}
    return one == other or {one, other} <= rates
