"""Read qperf's results, one or several tests in a file.

What the values are (``show_info`` and ``calc_results`` of qperf's source). All carry
the label ``test`` (``tcp_bw``) and are of the whole run of their test:

``throughput``
    ``bw`` and ``recv_bw``: payload received over the receiver's time.
``send_rate``
    ``send_bw``.
``rtt_mean``
    Twice ``latency``, which is the time over the messages of both ways.
``event:<name>``
    Other rates and costs as printed (``msg_rate``).

Prefixes are decimal (MB is 10^6 bytes, Gb 10^9 bits). qperf prints three significant
digits at most and cuts trailing zeros, so ``24 MB/sec`` is 24.0: the last digit is the
third one.
"""

import math
import re
from dataclasses import dataclass
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading
from patchstudy.records import Capture, Fault, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "throughput": "below the name of the test: bw or recv_bw",
    "send_rate": "below the name of the test: send_bw",
    "rtt_mean": "below the name of the test: 2 * latency",
    "event:*": "below the name of the test: the line of that name, as printed",
}
_TEST: Final = re.compile(r"^((?:tcp|udp|sctp|sdp|rds|rc|uc|ud|xrc|ver)_\w+):$")
#: What ``conf`` prints before the first test, and messages there.
_ASIDE: Final = re.compile(
    r"^(?:conf:$|warning: |server: ?$| {4}(?:loc|rem)_(?:node|cpu|os|qperf) +=  )"
)
_ROW: Final = re.compile(r"^ {4}(\w+) +=  *([-\d][\d.,]*)(?: (\S.*))?$")
_WORDS: Final = re.compile(r"^ {4}(\w+) +=  *(\S.*)$")
_BAND: Final = re.compile(r"^([KMGT]?)(B|bytes|b|bits)/sec$")
_PREFIX: Final = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "sec": 1.0}
_RATES: Final = {"bw": "throughput", "recv_bw": "throughput", "send_bw": "send_rate"}
_NUMBER: Final = re.compile(r"\d{1,3}(?:,\d{3})+|\d{1,15}(?:\.\d+)?")
_FAILED: Final = re.compile(
    r"^(?:failed to |server: |error |unable to |\S+: .*refused)"
)


def sniff(raw: RawFile) -> bool:
    """Say whether the first line but for ``conf`` and messages names a test."""
    lines = [one for one in plain_head(raw) if not _ASIDE.match(one)]
    return bool(lines) and bool(_TEST.match(lines[0]))


def load(raw: RawFile) -> Capture:
    """Read the results of every test.

    Raises
    ------
    CaptureError
        If there is no result, a test stands twice, or a unit is not known.
    """
    reading = Reading()
    tests: list[str] = []
    fault: Fault | None = None
    lines = [one for one in plain(raw.text) if not _ASIDE.match(one[1])]
    for number, line in lines:
        if test := _TEST.match(line):
            if test[1] in tests:
                problem = f"{test[1]} stands twice; save each run in a file of its own"
                raise CaptureError(raw.path, problem, where=str(number))
            tests.append(test[1])
        elif row := _ROW.match(line):
            _row(_Row(raw, tests[-1], str(number), row), reading)
        elif line.strip() and not _WORDS.match(line):
            fault = fault or Fault(text=line.strip(), where=str(number))
    if not reading.measurements and fault is None:
        raise CaptureError(raw.path, "no result of qperf; was it cut short?")
    told = [(one.metric, one.labels["test"]) for one in reading.measurements]
    if len(set(told)) < len(told):
        problem = "a value stands twice; save each run in a file of its own"
        raise CaptureError(raw.path, problem)
    _absent(tests, reading)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="qperf",
        workload={"protocol": _protocol(tests), "tests": len(tests)},
        measurements=() if fault else tuple(reading.measurements),
        caveats=tuple(reading.caveats),
        error=fault,
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of a result."""

    raw: RawFile
    test: str
    where: str
    match: re.Match[str]


def _row(row: _Row, reading: Reading) -> None:
    """Add the number of one line in its base unit."""
    name, text, unit = row.match.groups()
    if not _NUMBER.fullmatch(text):
        problem = f"{text!r} is not a number with a decimal point"
        raise CaptureError(row.raw.path, problem, where=row.where)
    value = float(text.replace(",", ""))
    labels = {"test": row.test}
    if name in _RATES:
        factor = _bits(row, unit)
        _add(reading, (_RATES[name], value, factor), labels)
    elif name == "latency" and unit in _SECONDS:
        _add(reading, ("rtt_mean", value, 2 * _SECONDS[unit]), labels)
    elif name == "latency":
        raise CaptureError(row.raw.path, f"unknown unit {unit!r}", where=row.where)
    else:
        unit_label = {"unit": unit} if unit else {}
        reading.whole(f"event:{name}", value, {**labels, **unit_label})


def _bits(row: _Row, unit: str | None) -> float:
    """Return the bit/s of one of the unit."""
    match = _BAND.match(unit or "")
    if not match:
        raise CaptureError(row.raw.path, f"unknown unit {unit!r}", where=row.where)
    return _PREFIX[match[1]] * (8 if match[2] in {"B", "bytes"} else 1)


def _add(
    reading: Reading, printed: tuple[str, float, float], labels: dict[str, str]
) -> None:
    """Add a value with what one more in the third digit means."""
    metric, value, factor = printed
    last = 10.0 ** (math.floor(math.log10(value)) - 2) if value > 0 else None
    resolution = None if last is None else last * factor
    reading.rate(metric, value * factor, labels, resolution=resolution)


def _absent(tests: list[str], reading: Reading) -> None:
    if any(test.startswith("udp_bw") for test in tests):
        reading.note(
            "loss-absent",
            "qperf counts no packets; the two rates tell the loss roughly",
        )


def _protocol(tests: list[str]) -> str | None:
    found = {test.partition("_")[0].upper() for test in tests}
    return found.pop() if len(found) == 1 else None
