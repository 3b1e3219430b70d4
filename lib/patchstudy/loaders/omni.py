"""Read netperf's omni output: ``-k`` (key=value), ``-o`` (CSV) and ``-O`` (columns).

The three print the same values under names of their own; here all are keys as ``-k``
writes them. Part of the loader ``netperf``, whose docstring says what the values are.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.netperf_lines import (
    BANNER,
    FAILED,
    OMNI,
    TESTS,
    Interim,
    interims,
    spans,
    started_at,
    title,
)
from patchstudy.loaders.reading import Reading, byte, last_digit, number
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, Fault, RawFile
from patchstudy.units import to_base

_KEYVAL: Final = re.compile(r"^([A-Z][A-Z0-9_]*(?:\[\d{1,9}\])?)=(.*)$")
_OWN_KEY: Final = re.compile(
    r"^(?:THROUGHPUT|ELAPSED_TIME|NETPERF_|LOCAL_|REMOTE_|SOCKET_TYPE|DIRECTION)[A-Z_]*"
    r"(?:\[\d+\])?="
)
_CSV_HEAD: Final = re.compile(r"^[A-Z\d][\w ()%/-]*(?:,[A-Z\d][\w ()%/-]*)+,?$")
_BITS: Final = re.compile(r"^10\^([369])bits/s(?:ec)?$")
_BYTES: Final = re.compile(r"^([KMG]?)[Bb]ytes/s(?:ec)?$")
_NAMES: Final = {
    "Throughput": "THROUGHPUT",
    "Throughput Units": "THROUGHPUT_UNITS",
    "Elapsed Time (sec)": "ELAPSED_TIME",
    "Protocol": "PROTOCOL",
    "Direction": "DIRECTION",
    "Local CPU Util %": "LOCAL_CPU_UTIL",
    "Remote CPU Util %": "REMOTE_CPU_UTIL",
    "Local Service Demand": "LOCAL_SD",
    "Remote Service Demand": "REMOTE_SD",
    "Service Demand Units": "SD_UNITS",
    "Local Send Size": "LOCAL_SEND_SIZE",
    "Remote Send Size": "REMOTE_SEND_SIZE",
    "Request Size Bytes": "REQUEST_SIZE",
    "Response Size Bytes": "RESPONSE_SIZE",
    "Initial Burst Requests": "BURST_SIZE",
    "Local Transport Retransmissions": "LOCAL_TRANSPORT_RETRANS",
    "Remote Transport Retransmissions": "REMOTE_TRANSPORT_RETRANS",
    "Transport MSS bytes": "TRANSPORT_MSS",
    "Local Send Throughput": "LOCAL_SEND_THROUGHPUT",
    "Local Recv Throughput": "LOCAL_RECV_THROUGHPUT",
    "Remote Send Throughput": "REMOTE_SEND_THROUGHPUT",
    "Remote Recv Throughput": "REMOTE_RECV_THROUGHPUT",
    "Local Send Calls": "LOCAL_SEND_CALLS",
    "Remote Recv Calls": "REMOTE_RECV_CALLS",
    "Local Bytes Sent": "LOCAL_BYTES_SENT",
    "Remote Bytes Received": "REMOTE_BYTES_RECVD",
    "Mean Latency Microseconds": "MEAN_LATENCY",
    "50th Percentile Latency Microseconds": "P50_LATENCY",
    "99th Percentile Latency Microseconds": "P99_LATENCY",
    "Throughput Confidence Width (%)": "THROUGHPUT_CONFID",
    "Confidence Iterations Run": "CONFIDENCE_ITERATION",
    "Local Congestion Control Algorithm": "LOCAL_CONG_CONTROL",
    "Remote Congestion Control Algorithm": "REMOTE_CONG_CONTROL",
    "Command Line": "COMMAND_LINE",
}
#: What ``-o`` prints by default without the names (``-P 0``): of a stream three sizes,
#: of a request/response test six, then time, throughput and its unit.
_BARE: Final = re.compile(
    r"^(?:\d{1,15},){3}(?:(?:\d{1,15},){3})?(?P<ELAPSED_TIME>\d{1,9}\.\d\d),"
    r"(?P<THROUGHPUT>\d{1,15}\.\d\d),"
    r"(?P<THROUGHPUT_UNITS>10\^[369]bits/s|[KMG]?Bytes/s|Trans/s)$"
)
#: What netperf prints by default, where neither ``-f`` nor a unit is in the output.
DEFAULT_UNIT: Final = "10^6bits/s"


def is_omni(lines: Sequence[tuple[int, str]]) -> bool:
    """Say whether the lines below a banner, or without one, are of the omni kind."""
    return any(
        _OWN_KEY.match(line)
        or (_CSV_HEAD.match(line) and any(name in line for name in _NAMES))
        or is_bare(line)
        or re.match(r"^OMNI (?:\S+ )+TEST from ", line)
        for _number, line in lines
    )


def is_bare(line: str) -> bool:
    """Say whether a line holds the values of ``-P 0 -o`` without their names."""
    return _BARE.match(line) is not None


def _values(lines: Sequence[tuple[int, str]], reading: Reading) -> dict[str, str]:
    """Return every key with its value, whichever way it was printed."""
    keyval = [match for _number, line in lines if (match := _KEYVAL.match(line))]
    if keyval:
        return {match[1]: match[2].strip() for match in keyval}
    texts = [line for _number, line in lines]
    heads = [at for at, line in enumerate(texts) if _CSV_HEAD.match(line)]
    if heads:
        return _from_csv(texts[heads[0] :], reading)
    if bare := next((match for line in texts if (match := _BARE.match(line))), None):
        reading.doubt(
            "test-unknown",
            "no banner (-P 0): the test and its direction are not in the file",
            "let netperf print its banner (no -P 0)",
        )
        return bare.groupdict()
    return _from_columns(texts)


def _from_csv(lines: Sequence[str], reading: Reading) -> dict[str, str]:
    """Return the values of the row below the head; only what surely fits."""
    rows = list(csv.reader(line for line in lines if line.strip()))
    if len(rows) < 2:
        return {}
    names, fields = rows[0], rows[1]
    if len(names) != len(fields):
        reading.doubt(
            "columns-differ",
            f"{len(names)} names stand over {len(fields)} values; only throughput and"
            " unit at the start are used",
            "print the values with their keys (-k)",
        )
        sure = names[:2] == ["Throughput", "Throughput Units"] and len(fields) >= 2
        names, fields = names[: 2 * sure], fields[: 2 * sure]
    pairs = zip(names, fields, strict=True)
    return {_NAMES[name]: value.strip() for name, value in pairs if name in _NAMES}


def _from_columns(lines: Sequence[str]) -> dict[str, str]:
    """Return the values of each block: lines of heads, then one line of values.

    A value stands under the left end of its head.
    """
    found: dict[str, str] = {}
    for block in _blocks(lines):
        *heads, row = block
        starts = [match.start() for match in re.finditer(r"\S+", row)]
        for start, end in zip(starts, [*starts[1:], None], strict=True):
            name = " ".join(" ".join(head[start:end].split()) for head in heads)
            name = " ".join(name.split()).removesuffix(" Final")
            if name in _NAMES:
                found[_NAMES[name]] = row[start:end].strip()
    return found


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines up to each row of values; heads hold no lone number."""
    block: list[str] = []
    for line in lines:
        if line.startswith(("OMNI ", "MIGRATED ", "Interim result", "!!!")):
            continue
        block.append(line)
        if re.search(r"(?:^|\s)-?\d+(?:\.\d+)?(?=\s|$)", line):
            yield block
            block = []


@dataclass(slots=True, kw_only=True)
class Result:
    """One omni result.

    Attributes
    ----------
    test
        ``TCP_STREAM`` and so on, or ``OMNI Send``; empty where the file does not tell.
    extra
        Rest of the banner.
    keys
        Values by their keys.
    """

    test: str
    extra: str
    keys: Mapping[str, str]
    unread: list[str] = field(default_factory=list)

    def number(self, key: str) -> float | None:
        """Return a value that is not one of netperf's sentinels (-1, -nan)."""
        return number(self.keys.get(key))

    @property
    def protocol(self) -> str | None:
        """TCP, UDP and so on, where the output or the test's name tells it."""
        told = self.keys.get("PROTOCOL")
        if told:
            return told
        name = self.test.partition("_")[0]
        return name if name in {"TCP", "UDP", "SCTP", "DCCP"} else None

    @property
    def direction(self) -> str | None:
        """``forward`` is from netperf to netserver; None where it is not told."""
        told = self.keys.get("DIRECTION", self.test).lower()
        if "send|recv" in told or "rr" in told or "connect" in told:
            return None
        if "rece" in told or "recv" in told or "maerts" in told:
            return "reverse"
        return "forward" if "send" in told or "stream" in told else None

    @property
    def transactions(self) -> bool:
        """Say whether the test counts transactions."""
        told = self.keys.get("THROUGHPUT_UNITS") == "Trans/s"
        return told or self.test.endswith(("RR", "_CC")) or "|" in self.test

    @property
    def connects(self) -> bool:
        """Say whether each transaction has a connection of its own."""
        told = f"{self.test} {self.keys.get('DIRECTION', '')}"
        return "CRR" in told or "_CC" in told or "Connect" in told

    @property
    def unit(self) -> str | None:
        """The unit of the throughput, also where only the interims tell it."""
        told = self.keys.get("THROUGHPUT_UNITS") or self.keys.get("NETPERF_UNITS[0]")
        if told is None and self.test:
            return "Trans/s" if self.transactions else DEFAULT_UNIT
        return told

    @property
    def unit_told(self) -> bool:
        """Say whether the output itself tells the unit."""
        return bool({"THROUGHPUT_UNITS", "NETPERF_UNITS[0]"} & self.keys.keys())

    @property
    def interims(self) -> Iterator[Interim]:
        """The interim results of ``-k``."""
        at = 0
        while f"NETPERF_INTERIM_RESULT[{at}]" in self.keys:
            names = ("INTERIM_RESULT", "INTERVAL", "ENDING")
            row = [self.number(f"NETPERF_{name}[{at}]") for name in names]
            unit = self.keys.get(f"NETPERF_UNITS[{at}]", "")
            value, length_s, end_s = row
            if value is not None and length_s is not None and end_s is not None:
                yield Interim(value=value, unit=unit, length_s=length_s, end_s=end_s)
            at += 1


def read(raw: RawFile, lines: list[tuple[int, str]]) -> Capture:
    """Return the one result of omni output."""
    banner = next((m for _n, line in lines if (m := OMNI.match(line))), None)
    classic = next((m for _n, line in lines if (m := BANNER.match(line))), None)
    test, extra = "", ""
    if banner:
        test, extra = banner.groups()
    elif classic:
        name, extra = title(classic)
        test = TESTS.get(name, name)
    reading = Reading(labels={"test": test} if test else {})
    reading.caveats.extend(line_end(raw))
    if reading.caveats and len(lines) > 1 and "," not in lines[-1][1]:
        lines = lines[:-1]  # its number may be cut
    marks = [at for at, (_n, line) in enumerate(lines) if OMNI.match(line)]
    own = lines[marks[0] :] if marks else lines  # a shell's line before it is no head
    result = Result(test=test, extra=extra, keys=_values(own, reading))
    failed = [(n, line) for n, line in lines if FAILED.match(line)]
    fault = Fault(text=failed[0][1], where=str(failed[0][0])) if failed else None
    if not result.keys and not failed:
        raise CaptureError(
            raw.path, "netperf's omni result is missing; was it cut short?"
        )
    found = list(result.interims) or interims(lines)
    _interims(result, found, reading)
    if fault is None:
        _add(result, reading)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="netperf",
        command=result.keys.get("COMMAND_LINE", "").strip('"') or None,
        started_at=started_at(found),
        workload=_workload(result),
        measurements=tuple(reading.measurements),
        facts=_facts(result),
        caveats=tuple(reading.caveats),
        error=fault,
    )


def _interims(
    result: Result,
    found: Sequence[Interim],
    reading: Reading,
) -> None:
    """Add the interims, as the local side counts them."""
    metric = "throughput" if result.direction == "reverse" else "send_rate"
    for one, span in zip(found, spans(found), strict=True):
        rate = _bits(repr(one.value), one.unit)
        if rate is not None and not result.transactions:
            reading.interval(metric, rate[0], span)
        elif one.unit == "Trans/s":
            reading.interval("transaction_rate", one.value, span)
    if found and result.direction is None and not result.transactions:
        reading.note(
            "direction-unknown",
            "the output does not tell who sent; interims are taken for the sender's",
        )


def _workload(result: Result) -> dict[str, str | int | float | None]:
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


def _facts(result: Result) -> dict[str, object]:
    facts: dict[str, object] = {}
    confidence = re.search(r"\+/-\S+ @ \S+ conf\.", result.extra)
    if confidence:
        facts["confidence"] = confidence[0]
    for key in ("LOCAL_CONG_CONTROL", "REMOTE_CONG_CONTROL", "CONFIDENCE_ITERATION"):
        if result.keys.get(key):
            facts[key.lower()] = result.keys[key]
    return facts


def _add(result: Result, reading: Reading) -> None:
    """Add the whole-run values of a result."""
    text = result.keys.get("THROUGHPUT")
    if result.number("THROUGHPUT") is None or text is None:
        reading.doubt("throughput-absent", "the output has no THROUGHPUT")
    elif result.transactions:
        _transactions(result, text, reading)
    else:
        _stream(result, text, reading)
    for side in ("local", "remote"):
        _cpu(result, side, reading)
    _confidence(result, reading)


def _bits(text: str, unit: str | None) -> tuple[float, float] | None:
    """Return bit/s and what the last digit means; None for another unit."""
    if unit and (match := _BITS.match(unit)):
        factor = to_base(1.0, f"10^{match[1]}bits/s")[0]
    elif unit and (match := _BYTES.match(unit)):
        factor = byte(8.0, match[1])
    else:
        return None
    return float(text) * factor, last_digit(text) * factor


def _stream(result: Result, text: str, reading: Reading) -> None:
    """Add throughput, send rate, loss and retransmits of a one-way test."""
    found = _bits(text, result.unit)
    if found is None and float(text) == 0 and not result.unit_told:
        found = (0.0, 0.0)
    if found is None:
        reading.doubt(
            "unit-unknown",
            f"throughput {text} without a unit ({result.unit}); it is absent",
            "print THROUGHPUT_UNITS too",
        )
        return
    if not result.unit_told and float(text):
        reading.doubt(
            "unit-assumed",
            "the output has no unit; 10^6 bit/s, netperf's default, is taken",
            "print THROUGHPUT_UNITS too",
        )
    reading.rate("throughput", found[0], resolution=found[1] or None)
    side = "REMOTE" if result.direction == "reverse" else "LOCAL"
    sent = result.keys.get(f"{side}_SEND_THROUGHPUT")
    if sent and result.number(f"{side}_SEND_THROUGHPUT"):
        rate = _bits(sent, result.unit)
        reading.rate("send_rate", rate and rate[0], resolution=rate and rate[1])
    if result.protocol == "UDP":
        _loss(result, reading)
    else:
        _retransmits(result, side, reading)


def _loss(result: Result, reading: Reading) -> None:
    """Add what was sent and not received, by messages or else by bytes."""
    sent, got = result.number("LOCAL_SEND_CALLS"), result.number("REMOTE_RECV_CALLS")
    if result.direction == "forward" and sent and got is not None:
        reading.loss(sent - got, sent)
        return
    sent, got = result.number("LOCAL_BYTES_SENT"), result.number("REMOTE_BYTES_RECVD")
    if result.direction == "forward" and sent and got is not None and got <= sent:
        reading.whole("loss", 1 - got / sent)
        reading.note("loss-by-bytes", "loss is what is missing of the sent bytes")
    else:
        reading.note("loss-absent", "the output does not tell what was sent")


def _retransmits(result: Result, side: str, reading: Reading) -> None:
    count = result.number(f"{side}_TRANSPORT_RETRANS")
    if count is None or result.direction is None:
        return
    mss = result.number("TRANSPORT_MSS")
    sent = result.number(f"{side}_BYTES_SENT")
    reading.whole("retransmits", count, exposure=sent / mss if sent and mss else None)


def _transactions(result: Result, text: str, reading: Reading) -> None:
    """Add the transaction rate and the round trips of a request/response test."""
    rate = _per_second(result, text, reading)
    if rate is None:
        return
    reading.whole("transaction_rate", rate[0], resolution=rate[1])
    if rate[0] == 0:
        reading.doubt("zero-transaction-rate", "no transaction was completed")
    if result.protocol == "UDP":
        reading.doubt(
            "udp-rr-may-stop",
            "one lost datagram stops UDP_RR and the rate still looks plausible",
            "compare with the other runs, or use TCP_RR",
        )
    if result.connects:
        if result.number("MEAN_LATENCY"):
            text = "the latency is of a transaction with its connection: no round trip"
            reading.note("rtt-absent", text)
        return
    _round_trips(result, rate, reading)


def _round_trips(result: Result, rate: tuple[float, float], reading: Reading) -> None:
    """Add the printed latencies, or the mean of a rate of one at a time."""
    keys = {"rtt_mean": "MEAN_LATENCY", "rtt_p50": "P50_LATENCY"}
    keys["rtt_p99"] = "P99_LATENCY"
    for metric, key in keys.items():
        latency = result.number(key)
        if latency:
            reading.whole(metric, latency * 1e-6)
    alone = "first burst 0" in result.extra or result.number("BURST_SIZE") == 0
    if rate[0] and alone and not result.number("MEAN_LATENCY"):
        reading.whole("rtt_mean", 1 / rate[0], resolution=rate[1] / rate[0] ** 2)


def _per_second(
    result: Result, text: str, reading: Reading
) -> tuple[float, float] | None:
    """Return transactions per second, also from bits of both directions."""
    if result.unit == "Trans/s":
        return float(text), last_digit(text)
    found = _bits(text, result.unit)
    sizes = [result.number("REQUEST_SIZE"), result.number("RESPONSE_SIZE")]
    both = sum(size or 0.0 for size in sizes) * 8
    if found is None or None in sizes or not both:
        reading.doubt(
            "transaction-rate-absent",
            "bits of both directions together, without the sizes of the messages",
            "run it without -f",
        )
        return None
    reading.note("rate-from-bits", "transactions are the printed bits / message sizes")
    return found[0] / both, found[1] / both


def _cpu(result: Result, side: str, reading: Reading) -> None:
    """Add the utilisation and, where it is per KB, the service demand of one side."""
    busy = result.number(f"{side.upper()}_CPU_UTIL")
    if busy is not None:
        reading.whole("cpu_busy", busy / 100, {"side": side}, resolution=1e-4)
    demand = result.number(f"{side.upper()}_SD")
    if demand is not None and result.keys.get("SD_UNITS") == "usec/KB":
        reading.whole("cpu_per_byte", demand * 1e-6 / 1024, {"side": side})


def _confidence(result: Result, reading: Reading) -> None:
    """Doubt a result whose confidence interval is wider than was asked for."""
    asked = re.search(r"\+/-(\d+\.\d+)% @", result.extra)
    width = result.number("THROUGHPUT_CONFID")
    if asked and width is not None and width > 2 * float(asked[1]):
        reading.doubt(
            "confidence-not-achieved",
            f"the confidence interval is {width} % wide; {2 * float(asked[1]):g} % were"
            " asked for",
            "find what varies, or allow more iterations (-i)",
        )
