"""Read the classic text of netperf: a head, a line of units, rows of numbers.

Part of the loader ``netperf``, whose docstring says what the values are.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.netperf_lines import (
    BANNER,
    FAILED,
    TESTS,
    Interim,
    interim,
    interims,
    spans,
    started_at,
    title,
)
from patchstudy.loaders.reading import Reading, last_digit
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, Fault, RawFile
from patchstudy.units import to_base

#: The line of units above the numbers.
HEAD: Final = re.compile(r"^\s*bytes\s.*\bsecs\b")
#: What to do where the output does not tell enough.
ADVICE: Final = "run the classic test with its head (no -P 0, -v 0, -o, -O, -k)"
_LABEL: Final = re.compile(
    r"^(?P<row>\s*-?\d[\d.]*(?:\s+-?\d[\d.]*)*)(?P<label>\s+[^\d\s.-].{0,200})?$"
)
_UNIT: Final = re.compile(r"(10\^[369]bits|[KMG]?Bytes)/s")
_BYTES: Final = {"Bytes": "byte", "KBytes": "KiB", "MBytes": "MiB", "GBytes": "GiB"}
_SEGMENT: Final = re.compile(
    r"Segment\s*+(?<=\n)Size \(bytes\)(?=[^\S\n]*+\n)\s*+(\d{1,15})"
)
_COARSE: Final = 0.01
_DEFAULT: Final = "10^6bits/s"


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


def read(raw: RawFile, lines: list[tuple[int, str]]) -> list[Capture]:
    """Return each result below a banner, or what made netperf fail."""
    return [_capture(one) for one in _by_rows(_page(raw, lines))]


def read_bare(raw: RawFile, lines: list[tuple[int, str]]) -> list[Capture]:
    """Return each result of ``-P 0``, which leaves banner and head out."""
    return [_capture(one) for one in _bare(raw, lines)]


def _capture(page: "_Page") -> Capture:
    reading = Reading(labels={"test": page.test})
    _interims(page, reading)
    fault = _fault(page)
    rows = [] if fault else _rows(page)
    if rows:
        if page.assumed:
            reading.caveats.extend(line_end(page.raw))
        _FAMILIES[page.family](page, rows, reading)
        _confidence(page.lines, reading)
        _assumed(page, reading)
    return Capture(
        path=page.raw.path,
        sha256=page.raw.digest,
        tool="netperf",
        started_at=started_at(page.interims),
        workload=_workload(page, rows),
        measurements=tuple(reading.measurements),
        facts=_facts(page, rows),
        caveats=tuple(reading.caveats),
        error=fault,
    )


def _assumed(page: "_Page", reading: Reading) -> None:
    """Doubt what the head would have told, where there is none."""
    if not page.assumed:
        return
    if page.interims and page.family != "RR":
        reading.doubt(
            "test-unknown",
            "no banner (-P 0): the test and its direction are not in the file; its"
            " unit is that of the interim results",
            ADVICE,
        )
        return
    reading.doubt(
        "unit-assumed",
        "no head (-P 0): the test and its unit are not in the file; netperf's"
        " default unit is taken",
        ADVICE,
    )


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
        Interim results.
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
    interims: list[Interim]
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


def _page(raw: RawFile, lines: list[tuple[int, str]]) -> _Page:
    """Find the head and the lines below it; refuse a test that is not known."""
    banners = [(n, match) for n, line in lines if (match := BANNER.match(line))]
    heads = [at for at, (_n, line) in enumerate(lines) if HEAD.match(line)]
    name, extra = title(banners[0][1]) if banners else ("", "")
    if banners and name not in TESTS:
        raise CaptureError(
            raw.path,
            f"netperf test {name!r} is not read; known tests: "
            + ", ".join(dict.fromkeys(TESTS.values())),
            where=str(banners[0][0]),
        )
    start = heads[0] if heads else len(lines)
    return _Page(
        raw=raw,
        lines=lines,
        test=TESTS.get(name, ""),
        extra=extra,
        head=lines[start][1] if heads else "",
        body=lines[start + 1 :],
        interims=interims(lines),
    )


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
    rest = [one for one in lines if not interim(one[1])]
    told = interims(lines)
    while rest:
        found = family([line for _number, line in rest])
        if found is None:
            raise CaptureError(
                raw.path,
                f"not the columns of netperf -P 0: {rest[0][1].strip()!r}; {ADVICE}",
                where=str(rest[0][0]),
            )
        (name, cpu), rows = found, len(_ROWS[found])
        match = _LABEL.match(rest[0][1])
        unit = "per sec" if name == "RR" else told[0].unit if told else _DEFAULT
        yield _Page(
            raw=raw,
            lines=lines,
            test=name,
            extra="",
            head=f"bytes secs. {unit}" + (" us/" if cpu else ""),
            body=[
                (number, _LABEL.sub(r"\g<row>", line)) for number, line in rest[:rows]
            ],
            interims=told,
            assumed=True,
            label=(match["label"] or "").strip() if match else "",
        )
        rest, told = rest[rows:], []


def family(lines: list[str]) -> tuple[str, bool] | None:
    """Return the family whose columns the first lines have, and whether with CPU.

    Interim results are no such lines.
    """
    rows = [_LABEL.sub(r"\g<row>", line) for line in lines]
    for key, patterns in _ROWS.items():
        pairs = list(zip(patterns, rows, strict=False))
        if len(pairs) == len(patterns) and all(one.match(row) for one, row in pairs):
            return key
    return None


def _fault(page: _Page) -> Fault | None:
    """Say what made netperf fail, if it did."""
    for number, line in page.lines:
        if FAILED.match(line):
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


def _stream(page: _Page, rows: list[list[str]], reading: Reading) -> None:
    """Read TCP_STREAM and TCP_MAERTS: sizes, time, rate; utilisation and demand."""
    fields = rows[0]
    _rate(page, "throughput", fields[4], reading)
    if page.cpu:
        for side, at in (("local", 5), ("remote", 6)):
            _cpu(page, side, fields[at], fields[at + 2], reading)


def _udp_stream(page: _Page, rows: list[list[str]], reading: Reading) -> None:
    """Read UDP_STREAM: first the sender's row, then the receiver's."""
    sender, receiver = rows
    _rate(page, "throughput", receiver[3], reading)
    _rate(page, "send_rate", sender[5], reading)
    sent, received = int(sender[3]), int(receiver[2])
    if 0 <= received <= sent and sent > 0:
        reading.loss(sent - received, sent)
    else:
        reading.doubt(
            "loss-absent",
            f"{received} messages received of {sent} sent cannot be; loss is absent",
        )
    if page.cpu:
        _cpu(page, "local", sender[6], sender[7], reading)
        _cpu(page, "remote", receiver[4], receiver[5], reading)


def _request_response(page: _Page, rows: list[list[str]], reading: Reading) -> None:
    """Read the tests that count transactions: sizes, time, rate; CPU."""
    fields = rows[0]
    rate, last = _per_second(page, fields, reading)
    reading.whole("transaction_rate", rate, resolution=last)
    if rate == 0:
        _zero("transaction-rate", "no transaction was completed", reading)
    elif page.burst:
        reading.note(
            "rtt-absent",
            f"{page.burst + 1} transactions were open at a time, so their rate tells"
            " no round trip",
        )
    elif page.test.endswith("_RR"):
        reading.whole("rtt_mean", 1 / rate, resolution=last / rate**2)
    _request_response_doubts(page, fields, reading)


def _per_second(
    page: _Page, fields: list[str], reading: Reading
) -> tuple[float, float]:
    """Return transactions per second and the last digit, also from bits (``-f``)."""
    rate, last = float(fields[5]), last_digit(fields[5])
    if "per sec" in page.head:
        return rate, last
    unit = _UNIT.search(page.head)
    both = (int(fields[2]) + int(fields[3])) * 8
    if not unit or not both:
        raise CaptureError(
            page.raw.path,
            "a request/response test without a rate per second; run it without -f",
        )
    reading.note(
        "rate-from-bits",
        "the bits (-f) of both directions together / the message sizes",
    )
    return _bits(rate, unit[1]) / both, _bits(last, unit[1]) / both


def _request_response_doubts(page: _Page, fields: list[str], reading: Reading) -> None:
    """Add the CPU of either side, and what UDP_RR does not tell."""
    if page.test == "UDP_RR":
        reading.doubt(
            "udp-rr-may-stop",
            "one lost datagram stops UDP_RR and the rate still looks plausible",
            "compare with the other runs, or use TCP_RR",
        )
    if page.cpu:
        _cpu(page, "local", fields[6], None, reading)
        _cpu(page, "remote", fields[7], None, reading)


_FAMILIES: Final = {
    "STREAM": _stream,
    "UDP_STREAM": _udp_stream,
    "RR": _request_response,
}


def _rate(page: _Page, metric: str, text: str, reading: Reading) -> None:
    """Add a rate with its last digit; doubt it where it is 0 or has too few digits."""
    unit = _UNIT.search(page.head)
    if not unit:
        raise CaptureError(
            page.raw.path, f"no known unit of throughput in the head; {ADVICE}"
        )
    value, last = _bits(float(text), unit[1]), _bits(last_digit(text), unit[1])
    reading.whole(metric, value, resolution=last)
    if value == 0:
        _zero(metric, f"{metric} is printed as {text}: less than half a digit", reading)
    elif last > _COARSE * value:
        reading.doubt(
            "coarse-resolution",
            f"{metric} {text} has too few digits to see a change below"
            f" {100 * last / value:.0f} %",
            "use -f k for slow links",
        )


def _zero(metric: str, text: str, reading: Reading) -> None:
    reading.doubt(
        f"zero-{metric.replace('_', '-')}",
        text,
        "check that the link was up; use -f k for slow links",
    )


def _cpu(
    page: _Page, side: str, busy: str, demand: str | None, reading: Reading
) -> None:
    """Add utilisation (percent) and service demand (us/KB) of one side."""
    labels = {"side": side}
    if float(busy) < 0:
        reading.note("cpu-absent", f"the CPU of the {side} side was not measured")
        return
    last = last_digit(busy) / 100
    reading.whole("cpu_busy", float(busy) / 100, labels, resolution=last)
    if demand is None or float(demand) < 0:
        return
    scale = 1e-6 / 1024
    last = last_digit(demand) * scale
    reading.whole("cpu_per_byte", float(demand) * scale, labels, resolution=last)


def _interims(page: _Page, reading: Reading) -> None:
    """Add the interim results as the local side counted them."""
    metric = "throughput" if page.test == "TCP_MAERTS" else "send_rate"
    for one, span in zip(page.interims, spans(page.interims), strict=True):
        bits = _UNIT.search(one.unit)
        if page.test == "STREAM" and page.assumed:
            reading.note("interim-unread", "without a banner it is unknown who sent")
            return
        if not bits and one.unit != "Trans/s":
            problem = f"interim results in {one.unit!r} are not read"
            reading.note("interim-unread", problem)
            return
        if page.family == "RR" and bits:
            reading.note("interim-unread", "interim bits are of both directions")
            return
        if bits:
            reading.interval(metric, _bits(one.value, bits[1]), span)
        else:
            reading.interval("transaction_rate", one.value, span)


def _confidence(numbered: list[tuple[int, str]], reading: Reading) -> None:
    """Pass on netperf's own warning about its confidence interval."""
    lines = [line for _number, line in numbered if line.startswith("!!!")]
    if not any("confidence was not achieved" in line for line in lines):
        return
    width = re.search(r"Throughput\s*:\s*(\S+)", "\n".join(lines))
    reading.doubt(
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
