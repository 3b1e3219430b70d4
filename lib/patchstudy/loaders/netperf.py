"""Read netperf 2.4 to 2.7: its classic text and its omni output.

What the values are (netperf's manual and source, checked against byte and packet
counters of captured runs). All carry the label ``test``; all are of the whole run, of
the one stream of the test, payload only; netperf omits nothing.

``throughput``
    TCP_STREAM, TCP_MAERTS: payload over the time until the receiver had it all.
    UDP_STREAM: the second line, what the receiver got. 10^3 prefixes for bits, 2^10
    for Bytes (``-f K``), as in the head. Resolution: the last printed digit.
``send_rate``
    UDP_STREAM: the first line, what the sender handed to its kernel.
``loss``
    UDP_STREAM: messages sent and not received, of those sent.
``transaction_rate``, ``rtt_mean``
    RR, CRR, CC: transactions per second. The mean round trip of an RR test is 1 / rate
    where one transaction was open at a time (no burst), else absent.
``cpu_busy``
    Label ``side`` is local (netperf) or remote (netserver): the whole machine, from
    /proc/stat. The sentinel -1 is absent.
``cpu_per_byte``
    Service demand (us/KB, a KB is 1024 byte) with label ``side``: CPU seconds of the
    whole machine over the payload that side moved.

Interim results (``-D``) are intervals as the local side counts them: ``send_rate`` of
a sending test, ``throughput`` of MAERTS, ``transaction_rate`` of RR.

Omni output (``-k``, ``-o``, ``-O``; module ``omni``) gives the same, and of RR tests
the printed latencies. A request/response test in bits (``-f``) adds up both directions:
its transactions are the bits over both message sizes. ``-P 0`` prints neither test nor
unit: netperf's default, 10^6 bit/s, is taken and doubted; a single bare number
(``-P 0 -v 0``) is refused. Several results in a file carry the label ``document``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import omni
from patchstudy.loaders.documents import together
from patchstudy.loaders.paste import unindented
from patchstudy.loaders.reading import Reading
from patchstudy.loaders.text import line_end
from patchstudy.records import (
    Capture,
    Caveat,
    Fault,
    Measurement,
    RawFile,
    Severity,
)
from patchstudy.units import to_base

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "throughput": (
        "column Throughput of the result (UDP_STREAM: of its second line); omni: "
        "THROUGHPUT in THROUGHPUT_UNITS"
    ),
    "send_rate": (
        'UDP_STREAM: column Throughput of the first line; an interval: "Interim '
        'result" of a sending test'
    ),
    "loss": "UDP_STREAM: messages of the second line of those of the first",
    "transaction_rate": 'column Trans. Rate per sec; an interval: "Interim result"',
    "rtt_mean": (
        "1 / transaction_rate where one transaction is open at a time; omni: "
        "MEAN_LATENCY"
    ),
    "rtt_p50": "omni: P50_LATENCY",
    "rtt_p99": "omni: P99_LATENCY",
    "cpu_busy": "columns Utilization (omni: LOCAL_CPU_UTIL, REMOTE_CPU_UTIL)",
    "cpu_per_byte": (
        "columns Service Demand, us/KB of 1024 byte (omni: LOCAL_SD, REMOTE_SD)"
    ),
    "retransmits": "omni: LOCAL_TRANSPORT_RETRANS",
}
_TESTS: Final = {
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
_BANNER: Final = re.compile(
    r"^(?:MIGRATED )?(?:(\S[\w/ -]{2,50}) TEST from \S+ .*\bAF_\w+ to .*\bAF_\w+(.*)"
    rf"|({'|'.join(map(re.escape, _TESTS))}) TEST to \S+( : .*)?)$"
)
_BEGINS: Final = re.compile(r"(?:MIGRATED )?[\w/-]+(?: [\w/-]+){0,3} TEST from ")
_WRAPPED: Final = re.compile(r"( TEST from [^\n]*\bto) ?\n(?:> ?)*(?=\S+ \()")
_FAILED: Final = re.compile(
    r"^(?:establish[_ ]control\b|(?:recv|send)_(?:response|request|data)\w*: "
    r"|netperf: |The test you requested \(.*is unknown to this netperf)"
)
_KEYVAL: Final = re.compile(
    r"^(?:NETPERF_INTERIM_RESULT\[0\]|THROUGHPUT(?:_UNITS)?|ELAPSED_TIME|LOCAL_CPU_UTIL)="
)
_LONE: Final = re.compile(r"^\s*\d{1,15}\.\d\d\s*$")
_LABEL: Final = re.compile(
    r"^(?P<row>\s*-?\d[\d.]*(?:\s+-?\d[\d.]*)*)(?P<label>\s+[^\d\s.-].{0,200})?$"
)
_OMNI: Final = re.compile(r"^(OMNI .+) TEST from \S+ .*\bAF_\w+ to .*\bAF_\w+(.*)$")
_INTERIM: Final = re.compile(
    r"^Interim result:\s+(\d{1,15}\.\d+) (\S+) over (\d{1,15}\.\d+) seconds"
    r" ending at (\d{1,15}\.\d+)"
)
_HEAD: Final = re.compile(r"^\s*bytes\s.*\bsecs\b")
_UNIT: Final = re.compile(r"(10\^[369]bits|[KMG]?Bytes)/s")
_BYTES: Final = {"Bytes": "byte", "KBytes": "KiB", "MBytes": "MiB", "GBytes": "GiB"}
_SEGMENT: Final = re.compile(r"Segment\s*\nSize \(bytes\)\s*\n\s*(\d{1,15})")
_ADVICE: Final = "run the classic test with its head (no -P 0, -v 0, -o, -O, -k)"
_COARSE: Final = 0.01


def _columns(pattern: str) -> re.Pattern[str]:
    """Return the expression for a row of such columns.

    ``i`` is an integer, a digit is a number with so many decimals (1: one or two), a
    digit after a minus may be the sentinel -1.
    """
    columns = {"i": r"(\d{1,15})", "1": r"(\d{1,15}\.\d{1,2})"}
    columns |= {digit: rf"(\d{{1,15}}\.\d{{{digit}}})" for digit in "23"}
    columns |= {f"-{digit}": columns[digit].replace("(", "(-?") for digit in "23"}
    wanted = re.findall(r"-?.", pattern)
    return re.compile(r"^\s*" + r"\s+".join(columns[one] for one in wanted) + r"\s*$")


#: Family -> whether with CPU -> its rows in their order.
_ROWS: Final = {
    ("STREAM", False): (_columns("iii22"),),
    ("STREAM", True): (_columns("iii22-2-2-3-3"),),
    ("UDP_STREAM", False): (_columns("ii2ii2"), _columns("i2i2")),
    ("UDP_STREAM", True): (_columns("ii2ii1-2-3"), _columns("i2i1-2-3")),
    ("RR", False): (_columns("iiii22"), _columns("ii")),
    ("RR", True): (_columns("iiii22-2-2-3-3"), _columns("ii")),
}


def sniff(raw: RawFile) -> bool:
    """Say whether the text has netperf's banner, an error of it, or its bare rows."""
    lines = [line for _number, line in _lines(raw.head) if line.strip()]
    marks = (_BANNER, _OMNI, _KEYVAL)
    if any(mark.match(line) for line in lines for mark in marks):
        return True
    if lines and _FAILED.match(lines[0]):
        return "netserver" in raw.head or "netperf" in raw.head
    if len(lines) == 1 and _LONE.match(lines[0]):
        return True
    return bool(lines) and bool(_bare_family(lines)) and len(lines) <= 64


def load(raw: RawFile) -> Capture:
    """Read the output of one test or of several.

    Raises
    ------
    CaptureError
        If the output is a bare number, or is cut.
    """
    captures = [one for piece in _pieces(raw) for one in _captures(raw, piece)]
    if not captures:
        raise CaptureError(raw.path, "netperf's result is missing; was it cut short?")
    return together(captures)


def _pieces(raw: RawFile) -> list[list[tuple[int, str]]]:
    """Return the lines of each banner; those before the first belong to it."""
    lines = list(_lines(raw.text))
    banners = (_BANNER, _OMNI)
    starts = [
        at
        for at, (_number, line) in enumerate(lines)
        if any(banner.match(line) for banner in banners)
    ]
    ends = [*starts[1:], len(lines)]
    return [
        lines[0 if start in starts[:1] else start : end]
        for start, end in zip(starts or [0], ends, strict=True)
    ]


def _captures(raw: RawFile, lines: list[tuple[int, str]]) -> list[Capture]:
    """Return what one banner's lines, or lines without a banner, say."""
    told = [(number, line) for number, line in lines if line.strip()]
    rest = [one for one in told if not _BANNER.match(one[1])]
    if len(rest) == 1 and _LONE.match(rest[0][1]):
        raise CaptureError(
            raw.path,
            f"a bare number ({rest[0][1].strip()}): unit and time are not in the file;"
            f" {_ADVICE}",
            where=str(rest[0][0]),
        )
    if omni.is_omni(lines):
        return [_omni(raw, lines)]
    if any(_BANNER.match(line) or _FAILED.match(line) for _n, line in lines):
        page = _page(raw, lines)
        return [_classic(one) for one in _by_rows(page)]
    return [_classic(page) for page in _bare(raw, told)]


def _classic(page: "_Page") -> Capture:
    found = _Found()
    _interims(page, found)
    fault = _fault(page)
    rows = [] if fault else _rows(page)
    if rows:
        if page.assumed:
            found.caveats.extend(line_end(page.raw))
        _FAMILIES[page.family](page, rows, found)
        _confidence(page.lines, found)
    if page.assumed and rows:
        found.doubt(
            "unit-assumed",
            "no head (-P 0): the test and its unit are not in the file; netperf's"
            " default unit is taken",
            _ADVICE,
        )
    return Capture(
        path=page.raw.path,
        sha256=page.raw.digest,
        tool="netperf",
        started_at=_started_at(page.interims),
        workload=_workload(page, rows),
        measurements=tuple(found.measurements),
        facts=_facts(page, rows),
        caveats=tuple(found.caveats),
        error=fault,
    )


def _omni(raw: RawFile, lines: list[tuple[int, str]]) -> Capture:
    """Read omni output."""
    banner = next((m for _n, line in lines if (m := _OMNI.match(line))), None)
    classic = next((m for _n, line in lines if (m := _BANNER.match(line))), None)
    test, extra = "", ""
    if banner:
        test, extra = banner.groups()
    elif classic:
        name, extra = _title(classic)
        test = _TESTS.get(name, name)
    reading = Reading(labels={"test": test} if test else {})
    reading.caveats.extend(line_end(raw))
    if reading.caveats and len(lines) > 1 and "," not in lines[-1][1]:
        lines = lines[:-1]  # its number may be cut
    marks = [at for at, (_n, line) in enumerate(lines) if _OMNI.match(line)]
    own = lines[marks[0] :] if marks else lines  # a shell's line before it is no head
    result = omni.Result(test=test, extra=extra, keys=omni.values(own, reading))
    failed = [(n, line) for n, line in lines if _FAILED.match(line)]
    fault = Fault(text=failed[0][1], where=str(failed[0][0])) if failed else None
    if not result.keys and not failed:
        raise CaptureError(
            raw.path, "netperf's omni result is missing; was it cut short?"
        )
    interims = list(result.interims()) or _printed_interims(lines)
    _omni_interims(result, interims, reading)
    if fault is None:
        omni.add(result, reading)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="netperf",
        command=result.keys.get("COMMAND_LINE", "").strip('"') or None,
        started_at=_started_at(interims),
        workload=_omni_workload(result),
        measurements=tuple(reading.measurements),
        facts=_omni_facts(result),
        caveats=tuple(reading.caveats),
        error=fault,
    )


def _omni_interims(
    result: omni.Result,
    interims: list[tuple[float, str, float, float]],
    reading: Reading,
) -> None:
    """Add the interims, as the local side counts them."""
    metric = "throughput" if result.direction == "reverse" else "send_rate"
    for value, unit, length, end in interims:
        start = end - length - _origin(interims)
        rate = omni.bits(repr(value), unit)
        if rate is not None and not result.transactions:
            span = (max(start, 0.0), end - _origin(interims))
            reading.interval(metric, rate[0], span)
        elif unit == "Trans/s":
            span = (max(start, 0.0), end - _origin(interims))
            reading.interval("transaction_rate", value, span)
    if interims and result.direction is None and not result.transactions:
        reading.note(
            "direction-unknown",
            "the output does not tell who sent; interims are taken for the sender's",
        )


def _omni_workload(result: omni.Result) -> dict[str, str | int | float | None]:
    sizes = {
        "send_size": "REMOTE_SEND_SIZE"
        if result.direction == "reverse"
        else "LOCAL_SEND_SIZE",
        "request_size": "REQUEST_SIZE",
        "response_size": "RESPONSE_SIZE",
        "mss": "TRANSPORT_MSS",
    }
    found = {name: result.number(key) for name, key in sizes.items()}
    return {
        "protocol": result.protocol,
        "test": result.test or None,
        "direction": result.direction,
        "streams": 1,
        "duration_s": result.number("ELAPSED_TIME"),
        **{name: int(value) for name, value in found.items() if value},
    }


def _omni_facts(result: omni.Result) -> dict[str, object]:
    facts: dict[str, object] = {}
    confidence = re.search(r"\+/-\S+ @ \S+ conf\.", result.extra)
    if confidence:
        facts["confidence"] = confidence[0]
    for key in ("LOCAL_CONG_CONTROL", "REMOTE_CONG_CONTROL", "CONFIDENCE_ITERATION"):
        if result.keys.get(key):
            facts[key.lower()] = result.keys[key]
    return facts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """The lines of one test.

    Attributes
    ----------
    raw
        The file.
    test
        ``TCP_STREAM`` and so on; empty where netperf failed before the banner.
    extra
        Rest of the banner: confidence, first burst.
    head
        The line of units above the values; empty where it is missing.
    body
        Numbered lines after the head.
    interims
        Interim results: value, unit, length in s, end in s since 1970.
    lines
        All numbered lines.
    assumed
        Whether the head was not in the file.
    label
        What ``-B`` put behind the values.
    """

    raw: RawFile
    lines: list[tuple[int, str]]
    test: str
    extra: str
    head: str
    body: list[tuple[int, str]]
    interims: list[tuple[float, str, float, float]]
    assumed: bool = False
    label: str = ""

    @property
    def family(self) -> str:
        if self.test == "UDP_STREAM":
            return self.test
        one_way = self.test.endswith(("STREAM", "MAERTS", "SENDFILE"))
        return "STREAM" if one_way else "RR"

    @property
    def cpu(self) -> bool:
        return "us/" in self.head

    @property
    def burst(self) -> int:
        """Further transactions open at a time; old versions print it only if any."""
        burst = re.search(r"first burst (\d{1,15})", self.extra)
        return int(burst[1]) if burst else 0


@dataclass(slots=True)
class _Found:
    """What has been read so far."""

    measurements: list[Measurement] = field(default_factory=list)
    caveats: list[Caveat] = field(default_factory=list)

    def note(self, code: str, text: str) -> None:
        self.caveats.append(Caveat(code=code, severity=Severity.NOTE, text=text))

    def doubt(self, code: str, text: str, todo: str = "") -> None:
        self.caveats.append(
            Caveat(code=code, severity=Severity.DOUBT, text=text, todo=todo)
        )


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, without what mails and pages do to them."""
    if " TEST from " in text:
        text = text.replace("\\_", "_")
        text = unindented(_WRAPPED.sub(r"\1 ", text), _BEGINS)
    for number, line in enumerate(text.splitlines(), start=1):
        yield number, re.sub(r"^(?:> ?)+", "", line)


def _title(banner: re.Match[str]) -> tuple[str, str]:
    """Return the name of the test and the rest of its banner."""
    return banner[1] or banner[3], banner[2] or banner[4] or ""


def _page(raw: RawFile, lines: list[tuple[int, str]]) -> _Page:
    """Find the head and the lines below it; refuse a test that is not known."""
    banners = [(n, match) for n, line in lines if (match := _BANNER.match(line))]
    heads = [at for at, (_n, line) in enumerate(lines) if _HEAD.match(line)]
    name, extra = _title(banners[0][1]) if banners else ("", "")
    if banners and name not in _TESTS:
        raise CaptureError(
            raw.path,
            f"netperf test {name!r} is not read; known tests: "
            + ", ".join(dict.fromkeys(_TESTS.values())),
            where=str(banners[0][0]),
        )
    start = heads[0] if heads else len(lines)
    return _Page(
        raw=raw,
        lines=lines,
        test=_TESTS.get(name, ""),
        extra=extra,
        head=lines[start][1] if heads else "",
        body=lines[start + 1 :],
        interims=_printed_interims(lines),
    )


def _printed_interims(
    lines: list[tuple[int, str]],
) -> list[tuple[float, str, float, float]]:
    """Return value, unit, length in s and end in s since 1970 of each interim."""
    return [
        (float(m[1]), m[2], float(m[3]), float(m[4]))
        for _number, line in lines
        if (m := _INTERIM.match(line))
    ]


def _by_rows(page: _Page) -> Iterator[_Page]:
    """Yield the page once for each result below its head."""
    if not page.head:
        yield page
        return
    patterns = _ROWS[page.family, page.cpu]
    body = [(number, line) for number, line in page.body if line.strip()]
    yield replace(page, body=body)
    later = body[len(patterns) :]
    for at, (_number, line) in enumerate(later):
        if patterns[0].match(line) and page.family != "RR":
            yield replace(page, body=later[at:], interims=[])


def _bare(raw: RawFile, lines: list[tuple[int, str]]) -> Iterator[_Page]:
    """Yield a page for each result of ``-P 0``, with the head that netperf left out."""
    rest = lines
    while rest:
        found = _bare_family([line for _number, line in rest])
        if found is None:
            raise CaptureError(
                raw.path,
                f"not the columns of netperf -P 0: {rest[0][1].strip()!r}; {_ADVICE}",
                where=str(rest[0][0]),
            )
        (family, cpu), rows = found, len(_ROWS[found])
        match = _LABEL.match(rest[0][1])
        unit = "per sec" if family == "RR" else "10^6bits/sec"
        yield _Page(
            raw=raw,
            lines=lines,
            test=family,
            extra="",
            head=f"bytes secs. {unit}" + (" us/" if cpu else ""),
            body=[
                (number, _LABEL.sub(r"\g<row>", line)) for number, line in rest[:rows]
            ],
            interims=[],
            assumed=True,
            label=(match["label"] or "").strip() if match else "",
        )
        rest = rest[rows:]


def _bare_family(lines: list[str]) -> tuple[str, bool] | None:
    """Return the family whose columns the first lines have, and whether with CPU."""
    rows = [_LABEL.sub(r"\g<row>", line) for line in lines]
    for key, patterns in _ROWS.items():
        pairs = list(zip(patterns, rows, strict=False))
        if len(pairs) == len(patterns) and all(one.match(row) for one, row in pairs):
            return key
    return None


def _fault(page: _Page) -> Fault | None:
    """Say what made netperf fail, if it did."""
    for number, line in page.lines:
        if _FAILED.match(line):
            return Fault(text=line.strip(), where=str(number))
    if not page.head:
        raise CaptureError(
            page.raw.path, "netperf's result is missing; was it cut short?"
        )
    return None


def _rows(page: _Page) -> list[list[str]]:
    """Return the fields of the result's rows.

    Raises
    ------
    CaptureError
        If a row is missing, has other columns, or stands more than once.
    """
    patterns = _ROWS[page.family, page.cpu]
    lines = [(number, line) for number, line in page.body if line.strip()]
    rows = []
    for pattern, (number, line) in zip(patterns, lines, strict=False):
        match = pattern.match(line)
        if not match:
            raise CaptureError(
                page.raw.path,
                f"not the columns of {page.test}: {line.strip()!r}; was it cut short?",
                where=str(number),
            )
        rows.append(list(match.groups()))
    if len(rows) < len(patterns):
        raise CaptureError(
            page.raw.path,
            f"{page.test} prints {len(patterns)} rows, here are {len(rows)};"
            " was it cut short?",
        )
    return rows


def _stream(page: _Page, rows: list[list[str]], found: _Found) -> None:
    """Read TCP_STREAM and TCP_MAERTS: sizes, time, rate; utilisation and demand."""
    fields = rows[0]
    _rate(page, "throughput", fields[4], found)
    if page.cpu:
        for side, at in (("local", 5), ("remote", 6)):
            _cpu(page, side, fields[at], fields[at + 2], found)


def _udp_stream(page: _Page, rows: list[list[str]], found: _Found) -> None:
    """Read UDP_STREAM: first the sender's row, then the receiver's."""
    sender, receiver = rows
    _rate(page, "throughput", receiver[3], found)
    _rate(page, "send_rate", sender[5], found)
    sent, received = int(sender[3]), int(receiver[2])
    if 0 <= received <= sent and sent > 0:
        found.measurements.append(
            Measurement(
                metric="loss",
                value=(sent - received) / sent,
                labels={"test": page.test},
                exposure=float(sent),
                resolution=1 / sent,
            )
        )
    else:
        found.doubt(
            "loss-absent",
            f"{received} messages received of {sent} sent cannot be; loss is absent",
        )
    if page.cpu:
        _cpu(page, "local", sender[6], sender[7], found)
        _cpu(page, "remote", receiver[4], receiver[5], found)


def _request_response(page: _Page, rows: list[list[str]], found: _Found) -> None:
    """Read the tests that count transactions: sizes, time, rate; CPU."""
    fields = rows[0]
    rate, last = _per_second(page, fields, found)
    labels = {"test": page.test}
    found.measurements.append(
        Measurement(
            metric="transaction_rate", value=rate, labels=labels, resolution=last
        )
    )
    if rate == 0:
        _zero("transaction-rate", "no transaction was completed", found)
    elif page.burst:
        found.note(
            "rtt-absent",
            f"{page.burst + 1} transactions were open at a time, so their rate tells"
            " no round trip",
        )
    elif page.test.endswith("_RR"):
        found.measurements.append(
            Measurement(
                metric="rtt_mean",
                value=1 / rate,
                labels=labels,
                resolution=last / rate**2,
            )
        )
    _request_response_doubts(page, fields, found)


def _per_second(page: _Page, fields: list[str], found: _Found) -> tuple[float, float]:
    """Return transactions per second and the last digit, also from bits (``-f``)."""
    rate, last = float(fields[5]), _last_digit(fields[5])
    if "per sec" in page.head:
        return rate, last
    unit = _UNIT.search(page.head)
    both = (int(fields[2]) + int(fields[3])) * 8
    if not unit or not both:
        raise CaptureError(
            page.raw.path,
            "a request/response test without a rate per second; run it without -f",
        )
    found.note(
        "rate-from-bits",
        "the bits (-f) of both directions together / the message sizes",
    )
    return _bits(rate, unit[1]) / both, _bits(last, unit[1]) / both


def _request_response_doubts(page: _Page, fields: list[str], found: _Found) -> None:
    """Add the CPU of either side, and what UDP_RR does not tell."""
    if page.test == "UDP_RR":
        found.doubt(
            "udp-rr-may-stop",
            "one lost datagram stops UDP_RR and the rate still looks plausible",
            "compare with the other runs, or use TCP_RR",
        )
    if page.cpu:
        _cpu(page, "local", fields[6], None, found)
        _cpu(page, "remote", fields[7], None, found)


_FAMILIES: Final = {
    "STREAM": _stream,
    "UDP_STREAM": _udp_stream,
    "RR": _request_response,
}


def _rate(page: _Page, metric: str, text: str, found: _Found) -> None:
    """Add a rate with its last digit; doubt it where it is 0 or has too few digits."""
    unit = _UNIT.search(page.head)
    if not unit:
        raise CaptureError(
            page.raw.path, f"no known unit of throughput in the head; {_ADVICE}"
        )
    value, last = _bits(float(text), unit[1]), _bits(_last_digit(text), unit[1])
    found.measurements.append(
        Measurement(
            metric=metric, value=value, labels={"test": page.test}, resolution=last
        )
    )
    if value == 0:
        _zero(metric, f"{metric} is printed as {text}: less than half a digit", found)
    elif last > _COARSE * value:
        found.doubt(
            "coarse-resolution",
            f"{metric} {text} has too few digits to see a change below"
            f" {100 * last / value:.0f} %",
            "use -f k for slow links",
        )


def _zero(metric: str, text: str, found: _Found) -> None:
    found.doubt(
        f"zero-{metric.replace('_', '-')}",
        text,
        "check that the link was up; use -f k for slow links",
    )


def _cpu(page: _Page, side: str, busy: str, demand: str | None, found: _Found) -> None:
    """Add utilisation (percent) and service demand (us/KB) of one side."""
    labels = {"test": page.test, "side": side}
    if not 0 <= float(busy) <= 100:
        found.note("cpu-absent", f"the CPU of the {side} side was not measured")
        return
    found.measurements.append(
        Measurement(
            metric="cpu_busy",
            value=float(busy) / 100,
            labels=labels,
            resolution=_last_digit(busy) / 100,
        )
    )
    if demand is None or float(demand) < 0:
        return
    found.measurements.append(
        Measurement(
            metric="cpu_per_byte",
            value=float(demand) * 1e-6 / 1024,
            labels=labels,
            resolution=_last_digit(demand) * 1e-6 / 1024,
        )
    )


def _interims(page: _Page, found: _Found) -> None:
    """Add the interim results as the local side counted them."""
    metric = "throughput" if page.test == "TCP_MAERTS" else "send_rate"
    for value, unit, length, end in page.interims:
        bits = _UNIT.search(unit)
        if not bits and unit != "Trans/s":
            found.note("interim-unread", f"interim results in {unit!r} are not read")
            return
        if page.family == "RR" and bits:
            return  # both directions added up
        origin = _origin(page.interims)
        start = end - length - origin
        if end - origin <= max(start, 0.0):
            found.note("interim-unread", "an interim result has no length")
            continue
        found.measurements.append(
            Measurement(
                metric=metric if bits else "transaction_rate",
                value=_bits(value, bits[1]) if bits else value,
                start_s=max(start, 0.0),
                end_s=end - origin,
                labels={"test": page.test},
            )
        )


def _origin(interims: list[tuple[float, str, float, float]]) -> float:
    """Return when the first interim result began, in seconds since 1970."""
    _value, _unit, length, end = interims[0]
    return end - length


def _started_at(interims: list[tuple[float, str, float, float]]) -> str | None:
    if not interims or not 1e9 < _origin(interims) < 2**36:
        return None
    moment = datetime.fromtimestamp(int(_origin(interims)), tz=UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _confidence(numbered: list[tuple[int, str]], found: _Found) -> None:
    """Pass on netperf's own warning about its confidence interval."""
    lines = [line for _number, line in numbered if line.startswith("!!!")]
    if not any("confidence was not achieved" in line for line in lines):
        return
    width = re.search(r"Throughput\s*:\s*(\S+)", "\n".join(lines))
    found.doubt(
        "confidence-not-achieved",
        "netperf did not reach the confidence asked for within its iterations"
        + (f"; its interval for the throughput is {width[1]}" if width else ""),
        "find what varies, or allow more iterations (-i)",
    )


def _workload(
    page: _Page, rows: list[list[str]]
) -> dict[str, str | int | float | None]:
    """Return what was run; the duration is the measured one."""
    workload: dict[str, str | int | float | None] = {
        "protocol": None if page.assumed else page.test.partition("_")[0] or None,
        "test": page.test or None,
    }
    if page.family != "RR":
        reverse = page.test == "TCP_MAERTS"
        workload["direction"] = "reverse" if reverse else "forward"
        if page.test == "STREAM":  # TCP_STREAM and TCP_MAERTS print the same
            workload["direction"] = None
    workload["streams"] = 1
    if rows:
        at, sizes = _SIZES[page.family]
        workload["duration_s"] = float(rows[0][at])
        workload |= {name: int(rows[0][column]) for name, column in sizes.items()}
    segment = _SEGMENT.search("\n".join(line for _number, line in page.lines))
    if segment:
        workload["mss"] = int(segment[1])
    return workload


#: Family -> column of the elapsed time, and of the message sizes.
_SIZES: Final = {
    "STREAM": (3, {"send_size": 2}),
    "UDP_STREAM": (2, {"send_size": 1}),
    "RR": (4, {"request_size": 2, "response_size": 3}),
}


def _facts(page: _Page, rows: list[list[str]]) -> dict[str, object]:
    facts: dict[str, object] = {}
    confidence = re.search(r"\+/-\S+ @ \S+ conf\.", page.extra)
    if confidence:
        facts["confidence"] = confidence[0]
    if page.family == "RR" and not page.assumed:
        facts["burst"] = page.burst
    if page.label:
        facts["label"] = page.label
    if not rows:
        return facts
    first = rows[0]
    if page.family == "STREAM":
        facts |= {"recv_socket_byte": int(first[0]), "send_socket_byte": int(first[1])}
    elif page.family == "UDP_STREAM":
        facts |= {"send_socket_byte": int(first[0]), "send_errors": int(first[4])}
    elif page.cpu:
        names = ("local_us_per_transaction", "remote_us_per_transaction")
        demands = [float(one) for one in first[8:10]]
        facts |= {n: one for n, one in zip(names, demands, strict=True) if one >= 0}
    return facts


def _bits(value: float, unit: str) -> float:
    """Return bit/s from netperf's unit; its Bytes have prefixes of 2^10."""
    if unit in _BYTES:
        return to_base(value, _BYTES[unit])[0] * 8
    return to_base(value, unit + "/s")[0]


def _last_digit(text: str) -> float:
    """Return what one more in the last printed digit means."""
    return 10.0 ** -len(text.partition(".")[2])
