"""Read sockperf's client: ping-pong, under-load, playback and throughput.

What the values are (sockperf's source and captured runs); all are of the whole run,
the latencies of the valid duration, without warm-up. Colour codes are passed over.

``rtt_mean``, ``rtt_p50``, ``rtt_p99``
    sockperf prints half the round trip (``avg-latency``) unless it was called with
    ``--full-rtt`` (``avg-rtt``); here they are whole round trips. Microseconds.
    Quantiles from 20 observations on, 99 % from 1000 on.
``transaction_rate``
    Answers per second of the valid duration. Of under-load and playback that is what
    was asked for, not what was possible; the text does not tell the three apart.
``drops``
    Answers that did not come, of those asked for. With ``--reply-every`` far fewer
    answers than messages are right, so there is no loss.
``send_rate``
    throughput: payload that the client handed to its kernel; what arrived the text
    does not tell. Messages times their size where it is printed; else ``BandWidth``:
    MBps are 2^20 bytes (GBps a thousand of those), with the headers in versions 2.
"""

import re
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading
from patchstudy.records import Capture, Fault, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "rtt_mean": 'the line "Summary": twice the latency (as it is with --full-rtt)',
    "rtt_p50": 'the line "percentile 50.000": twice',
    "rtt_p99": 'the line "percentile 99.000": twice',
    "transaction_rate": (
        '"ReceivedMessages" of the line "[Valid Duration]" / its RunTime'
    ),
    "drops": '"# dropped messages"',
    "send_rate": (
        '"Total of ... messages sent in ... sec", times the size of a message; else '
        '"BandWidth"'
    ),
}
_PREFIX: Final = re.compile(r"^(?:\[STDOUT\] )?(?:sockperf: ?)?")
_SNIFF: Final = re.compile(
    r"^sockperf: |^sockperf\[CLIENT\]|^=+ Printing statistics for Server No: "
)
_FULL: Final = re.compile(r"^test was performed using the following parameters: (.*)$")
_VERSION: Final = re.compile(r"^== version #(\S+) ==")
_PROTOCOL: Final = re.compile(r"^\[ ?\d+\] IP = .* # (TCP|UDP)")
_VALID: Final = re.compile(
    r"^\[Valid Duration\] RunTime=(\d+\.\d+) sec; SentMessages=(\d{1,15});"
    r" ReceivedMessages=(\d{1,15})$"
)
_MEAN: Final = re.compile(
    r"^=+> avg-(latency|lat|rtt)= *(\d+\.\d+)(?: \(std-dev=(\d+\.\d+)?)?"
)
_DROPPED: Final = re.compile(
    r"^# dropped messages = (\d{1,15}); # duplicated messages = (\d{1,15});"
    r" # out-of-order messages = (\d{1,15})"
)
_OBSERVED: Final = re.compile(r"^Total (\d{1,15}) observations")
_PERCENTILE: Final = re.compile(r"^---> percentile +(\d+\.\d+) = +(\d+\.\d+)$")
_TOTAL: Final = re.compile(r"^Total of (\d{1,15}) messages sent in (\d+\.\d+) sec")
_SIZE: Final = re.compile(r"\bmsg-size=(\d{1,7})\b(?!\S*\+/-)")
_BAND: Final = re.compile(r"^Summary: BandWidth is (\d+\.\d+) (MBps|GBps) ")
_FAILED: Final = re.compile(
    r"^(?:No messages were received|No valid observations|ERROR\b|.*\berrno=\d)"
)
_ENOUGH: Final = {"rtt_p50": (50.0, 20), "rtt_p99": (99.0, 1000)}
_US: Final = 1e-6
_MEBI: Final = 2**20


def sniff(raw: RawFile) -> bool:
    """Say whether a line is sockperf's."""
    return any(_SNIFF.match(line) for line in plain_head(raw))


def load(raw: RawFile) -> Capture:
    """Read one run of sockperf's client.

    Raises
    ------
    CaptureError
        If the result is missing without an error, or there are several.
    """
    lines = [(n, _PREFIX.sub("", line)) for n, line in plain(raw.text)]
    reading = Reading()
    means, totals = _all(_MEAN, lines), _all(_TOTAL, lines)
    fault = None if means or totals else _fault(lines)
    if not means and not totals and not fault:
        problem = "sockperf's result is missing; was it cut short, or is it a server's?"
        raise CaptureError(raw.path, problem)
    if len(means) + len(totals) > 1:
        problem = "several results in one file; save each in a file of its own"
        raise CaptureError(raw.path, problem)
    facts: dict[str, object] = {}
    if means:
        facts = _latency(raw, lines, means[0], reading)
    elif totals:
        facts = _throughput(lines, totals[0], reading)
    versions, protocols = _all(_VERSION, lines), _all(_PROTOCOL, lines)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="sockperf",
        tool_version=versions[0][1] if versions else None,
        workload={
            "protocol": protocols[0][1] if protocols else None,
            "duration_s": _duration(lines),
            "length_byte": _message_size(lines),
        },
        measurements=tuple(reading.measurements),
        facts=facts,
        caveats=tuple(reading.caveats),
        error=fault,
    )


def _all(pattern: re.Pattern[str], lines: list[tuple[int, str]]) -> list[re.Match[str]]:
    return [match for _number, line in lines if (match := pattern.match(line))]


def _fault(lines: list[tuple[int, str]]) -> Fault | None:
    for number, line in lines:
        if _FAILED.match(line):
            return Fault(text=line, where=str(number))
    return None


def _duration(lines: list[tuple[int, str]]) -> float | None:
    for match in _all(_VALID, lines):
        return float(match[1])
    for match in _all(_TOTAL, lines):
        return float(match[2])
    return None


def _message_size(lines: list[tuple[int, str]]) -> int | None:
    """Return the size of a message, where one size is told; not the advised one."""
    for _number, line in lines:
        told = line.startswith("NOTE: ") or _FULL.match(line)
        size = _SIZE.search(line) if told else None
        if size and "msg-size-range" not in line.partition("For getting")[0]:
            return int(size[1])
    return None


def _latency(
    raw: RawFile, lines: list[tuple[int, str]], mean: re.Match[str], reading: Reading
) -> dict[str, object]:
    """Add round trips, answers and drops; return the facts."""
    factor = _US if mean[1] == "rtt" else 2 * _US
    valid, observed = _all(_VALID, lines), _all(_OBSERVED, lines)
    if not valid or not observed:
        problem = "sockperf's statistics are cut short"
        raise CaptureError(raw.path, problem)
    seconds, sent, received = (float(text) for text in valid[0].groups())
    resolution = 0.001 * factor
    reading.whole("rtt_mean", float(mean[2]) * factor, resolution=resolution)
    at = {float(one[1]): float(one[2]) for one in _all(_PERCENTILE, lines)}
    for metric, (percent, enough) in _ENOUGH.items():
        if percent in at and int(observed[0][1]) >= enough:
            reading.whole(metric, at[percent] * factor, resolution=resolution)
    if seconds > 0:
        reading.whole("transaction_rate", received / seconds)
    told = [match.groups() for match in _all(_DROPPED, lines)]
    facts: dict[str, object] = {"messages_sent": int(sent)}
    facts |= {"messages_received": int(received), "printed": mean[1]}
    if mean[3]:
        facts["rtt_deviation_s"] = round(float(mean[3]) * factor, 12)
    for dropped, duplicated, disordered in told[:1]:
        expected = received + int(dropped)
        reading.whole("drops", int(dropped), exposure=expected)
        facts |= {"duplicated": int(duplicated), "out_of_order": int(disordered)}
    if received < 0.9 * sent:
        reading.note(
            "answers-sampled",
            f"{received:.0f} answers to {sent:.0f} messages: not every message asks for"
            " one; loss is absent",
        )
    return facts


def _throughput(
    lines: list[tuple[int, str]], total: re.Match[str], reading: Reading
) -> dict[str, object]:
    """Add the rate at which the client sent; return the facts."""
    messages, seconds, size = int(total[1]), float(total[2]), _message_size(lines)
    band = _all(_BAND, lines)
    if size is not None and seconds > 0:
        rate = messages * size * 8 / seconds
        reading.whole("send_rate", rate, resolution=rate * 0.001 / seconds)
    elif band:
        unit = 8 * _MEBI * (1000 if band[0][2] == "GBps" else 1)
        rate, last = float(band[0][1]) * unit, 0.001 * unit
        reading.whole("send_rate", rate, resolution=last)
        reading.note(
            "size-unknown", "the size of a message is not printed; BandWidth was read"
        )
    reading.doubt(
        "throughput-absent",
        "sockperf counts at the sender; what arrived is not known",
        "read the counters of the receiving interface, or use another tool",
    )
    return {"messages": messages}
