"""Read ``ss -ti`` of iproute2: what the kernel knows of its TCP sockets.

Two lines a socket, or one with ``-O``; with or without head line; one dump or many,
each below a line of ``date +%s.%N``. Of several dumps the last state of every socket
counts, as the counters of a socket only grow.

The control connection of iperf3 and netperf stands among the data sockets: a socket
that moved less than a hundredth of what the busiest one did is no data socket and is
only a fact. What the values are (``tcp_stats_print`` in misc/ss.c, ``struct
tcp_info``); the label ``stream`` numbers the data sockets in the order of the file,
the value without label is of all data sockets:

``retransmits``
    ``retrans:now/total``: the total of segments sent again since the socket was made;
    ss leaves the word out where it is 0. Exposure: data segments sent.
``rtt_mean``
    The kernel's smoothed round trip (about the last 8 answers), in ms; over sockets and
    dumps the plain mean. It is no mean over the run.
``throughput``
    Intervals between dumps with a time only: payload that the peers acknowledged.

``delivery_rate``, ``pacing_rate``, ``cwnd``, ``minrtt`` are facts of each socket.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from statistics import fmean
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading
from patchstudy.records import Capture, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "retransmits": "retrans:<now>/<total> of the data sockets: the sum of total",
    "rtt_mean": "rtt:<smoothed>/<variance>, ms: the mean over data sockets and dumps",
    "throughput": (
        "bytes_acked of a dump less that of the one before, * 8 / the time between"
    ),
}
_STATES: Final = (
    r"(?:ESTAB|SYN-SENT|SYN-RECV|FIN-WAIT-[12]|TIME-WAIT|UNCONN|CLOSE-WAIT|LAST-ACK"
    r"|LISTEN|CLOSING)"
)
_HEAD: Final = re.compile(r"^(?:Netid +)?State +Recv-Q +Send-Q +Local Address:Port\b")
#: Address and port; a name of an interface may stand in it.
_END: Final = r"\S{1,200}:\S{1,99}"
_SOCKET: Final = re.compile(
    rf"^(?:tcp +)?(?P<state>{_STATES}) +\d+ +\d+ +(?P<local>{_END}) +(?P<peer>{_END})"
    r"(?P<rest>(?: .*)?)$"
)
_CLOCK: Final = re.compile(r"^(\d{10})(\.\d{1,9})?$")
_RTT: Final = re.compile(r"(?:^| )rtt:(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)")
_RETRANS: Final = re.compile(r"(?:^| )retrans:(\d{1,10})/(\d{1,10})")
_COUNT: Final = r"(?:^| ){}:(\d{{1,19}})(?: |$)"
_RATE: Final = r"(?:^| ){} (\d+(?:\.\d+)?)([KMG]?)bps"
_NAMES: Final = (
    "mss", "cwnd", "bytes_sent", "bytes_acked", "bytes_received", "bytes_retrans",
    "data_segs_out", "segs_out", "lost",
)  # fmt: skip
_MINRTT: Final = re.compile(r"(?:^| )minrtt:(\d+(?:\.\d+)?)")
_CONGESTION: Final = re.compile(
    r"(?:^| )(cubic|bbr\d?|reno|dctcp|vegas|westwood|bic|htcp|illinois|cdg|nv|yeah"
    r"|hybla|highspeed|scalable|veno|lp)(?= |$)"
)
_SCALE: Final = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
_CONTROL: Final = 0.01
_MS: Final = 1e-3


def sniff(raw: RawFile) -> bool:
    """Say whether a line is the head of ss, or a socket's."""
    return any(_HEAD.match(line) or _SOCKET.match(line) for line in plain_head(raw))


def load(raw: RawFile) -> Capture:
    """Read the data sockets of all dumps.

    Raises
    ------
    CaptureError
        If there is no established socket, or none with the kernel's information.
    """
    sockets, bare = _sockets(raw)
    last = {one.key: one for one in sockets}
    data = _data(list(last.values()))
    reading = Reading()
    streams = [[one for one in sockets if one.key == key] for key in data]
    stamps = [one.time_s for states in streams for one in states if one.time_s]
    origin_s = min(stamps, default=0.0)
    for number, states in enumerate(streams, start=1):
        label = {"stream": str(number)} if len(streams) > 1 else {}
        _stream(states, label, origin_s, reading)
    if len(streams) > 1:
        _retransmits([states[-1] for states in streams], {}, reading)
        times = [one.rtt_s for states in streams for one in states if one.rtt_s]
        reading.whole("rtt_mean", fmean(times) if times else None, resolution=1e-6)
    _intervals(streams, reading)
    _doubts(last, data, reading)
    if bare or not raw.text.endswith("\n"):
        reading.doubt(
            "cut-short",
            f"{bare} sockets without information, or the last line has no line end",
            "compare with the original file",
        )
    started = min(stamps, default=None)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="ss",
        started_at=_moment(started),
        workload={"protocol": "TCP", "streams": len(streams)},
        measurements=tuple(reading.measurements),
        facts={
            "sockets": [
                _fact(one, control=one.key not in data) for one in last.values()
            ],
            "states_read": len(sockets),
        },
        caveats=tuple(reading.caveats),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Socket:
    """One socket in one dump.

    Attributes
    ----------
    time_s
        Seconds since 1970 of the dump, where told.
    numbers
        The counters of ``_NAMES`` that ss printed.
    retrans
        Segments sent again, in total.
    """

    key: tuple[str, str]
    time_s: float | None
    rtt_s: float | None
    minrtt_s: float | None
    numbers: dict[str, int]
    rates: dict[str, float]
    retrans: int
    congestion: str | None

    @property
    def moved(self) -> int:
        sent = self.numbers.get("bytes_sent", self.numbers.get("bytes_acked", 0))
        return sent + self.numbers.get("bytes_received", 0)


def _sockets(raw: RawFile) -> tuple[list[_Socket], int]:
    """Return the established sockets of all dumps, and how many are bare."""
    sockets: list[_Socket] = []
    moment: float | None = None
    pending: re.Match[str] | None = None
    bare = 0
    text = raw.text if raw.text.endswith("\n") else raw.text.rpartition("\n")[0]
    for _number, line in plain(text):
        if clock := _CLOCK.match(line):
            moment = float(clock[0])
        elif match := _SOCKET.match(line):
            pending = match if match["state"] == "ESTAB" else None
            bare += pending is not None
            if pending and _RTT.search(match["rest"]):
                sockets.append(_socket(match, match["rest"], moment))
                pending = None
        elif pending and line.startswith(("\t", " ")) and "rto:" in line:
            sockets.append(_socket(pending, line, moment))
            pending = None
    if not sockets:
        asked = "no information on the sockets; call ss with -i"
        none = "no established TCP socket; was ss called while the test ran?"
        raise CaptureError(raw.path, asked if bare else none)
    # a socket that stands twice in one dump counts once
    once = {(one.key, one.time_s or at): one for at, one in enumerate(sockets)}
    return list(once.values()), bare - len(sockets)


def _socket(match: re.Match[str], info: str, moment: float | None) -> _Socket:
    rtt, least = _RTT.search(info), _MINRTT.search(info)
    again, congestion = _RETRANS.search(info), _CONGESTION.search(info)
    counts = {name: re.search(_COUNT.format(name), info) for name in _NAMES}
    rates = {
        name: re.search(_RATE.format(name), info)
        for name in ("delivery_rate", "pacing_rate")
    }
    return _Socket(
        key=(match["local"], match["peer"]),
        time_s=moment,
        rtt_s=float(rtt[1]) * _MS if rtt else None,
        minrtt_s=float(least[1]) * _MS if least else None,
        numbers={name: int(found[1]) for name, found in counts.items() if found},
        rates={
            name: float(found[1]) * _SCALE[found[2]]
            for name, found in rates.items()
            if found
        },
        retrans=int(again[2]) if again else 0,
        congestion=congestion[1] if congestion else None,
    )


def _data(sockets: Sequence[_Socket]) -> list[tuple[str, str]]:
    """Return the keys of the sockets that carried data."""
    most = max(one.moved for one in sockets)
    return [one.key for one in sockets if one.moved >= _CONTROL * most]


def _stream(
    states: Sequence[_Socket],
    label: dict[str, str],
    origin_s: float,
    reading: Reading,
) -> None:
    """Add the values of one data socket; intervals end at a dump."""
    _retransmits(states[-1:], label, reading)
    times = [one.rtt_s for one in states if one.rtt_s is not None]
    reading.whole("rtt_mean", fmean(times) if times else None, label, resolution=1e-6)
    for before, after in pairwise(states):
        if before.time_s and after.time_s and after.rtt_s is not None:
            span = (before.time_s - origin_s, after.time_s - origin_s)
            reading.interval("rtt_mean", after.rtt_s, span, label, resolution=1e-6)


def _retransmits(
    states: Sequence[_Socket], label: dict[str, str], reading: Reading
) -> None:
    sent = [one.numbers.get("data_segs_out") for one in states]
    known = [one for one in sent if one is not None]
    packets = sum(known) if len(known) == len(sent) and sum(known) else None
    total = sum(one.retrans for one in states)
    reading.whole("retransmits", total, label, exposure=packets)


def _intervals(streams: Sequence[Sequence[_Socket]], reading: Reading) -> None:
    """Add what all peers acknowledged between two dumps."""
    acked: dict[float, dict[tuple[str, str], int]] = {}
    for states in streams:
        for one in states:
            if one.time_s is not None and "bytes_acked" in one.numbers:
                told = acked.setdefault(one.time_s, {})
                told[one.key] = one.numbers["bytes_acked"]
    times = sorted(acked)
    for before, after in pairwise(times):
        gone = acked[before].keys() - acked[after].keys()
        moved = sum(acked[after].values()) - sum(acked[before].values())
        if not gone and moved >= 0:
            span = (before - times[0], after - times[0])
            rate = moved * 8 / (after - before)
            reading.interval("throughput", rate, span, {"direction": "upload"})


def _doubts(
    last: dict[tuple[str, str], _Socket],
    data: Sequence[tuple[str, str]],
    reading: Reading,
) -> None:
    if len(data) < len(last):
        reading.note(
            "control-sockets",
            f"{len(last) - len(data)} of {len(last)} sockets moved next to nothing and"
            " are taken for control connections",
        )
    reading.note(
        "rtt-smoothed", "ss prints the kernel's smoothed round trip of a moment"
    )


def _fact(one: _Socket, *, control: bool) -> dict[str, object]:
    told: dict[str, object] = {"local": one.key[0], "peer": one.key[1]}
    told |= {"control": control, "rtt_s": one.rtt_s, "minrtt_s": one.minrtt_s}
    told |= {f"{name}_bit_per_s": rate for name, rate in one.rates.items()}
    return {**told, **one.numbers, "retrans": one.retrans, "congestion": one.congestion}


def _moment(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(int(seconds), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
