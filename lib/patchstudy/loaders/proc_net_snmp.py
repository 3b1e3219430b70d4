"""Read /proc/net/snmp or /proc/net/netstat: the kernel's protocol counters.

Pairs of lines with one prefix, the names above the numbers (``snmp_seq_show`` and
``netstat_seq_show`` in net/ipv4/proc.c). A counter is named as ``nstat`` names it, by
the prefix and the name (``event:TcpRetransSegs``). Those that nstat calls useless are
settings or states (forwarding, time limits, open connections) and are gauges here. All
are counts (unit 1), as wide as a C ``long``, of the network namespace of the reader.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import line_end, lines
from patchstudy.records import Capture, Measurement, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "event:*": "the number below <name> in the pair of lines with its prefix",
}
#: How a file begins that is of the kernel's protocol counters and of nothing else.
OPENS = re.compile(r"(?:Ip: Forwarding|TcpExt: SyncookiesSent) ")
_FIRST = re.compile(
    r"\s*(?P<prefix>[A-Z]\w+):(?: [A-Za-z]\w*)+ *\r?\n(?P=prefix):(?: -?\d+)+"
)
_COUNT = re.compile(r"-?\d{1,20}")
_GAUGES = {
    "IpForwarding",
    "IpDefaultTTL",
    "TcpRtoAlgorithm",
    "TcpRtoMin",
    "TcpRtoMax",
    "TcpMaxConn",
    "TcpCurrEstab",
}


def sniff(raw: RawFile) -> bool:
    """Say whether it begins with two lines of one prefix, names over numbers."""
    return _FIRST.match(raw.head) is not None


def load(raw: RawFile) -> Capture:
    """Read every pair of lines."""
    rows = lines(raw)
    if len(rows) % 2:
        problem = "a line of names has no numbers below; was it cut short?"
        raise CaptureError(raw.path, problem, where=str(rows[-1][0]))
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="proc_net_snmp",
        measurements=tuple(chain.from_iterable(_pair(raw, *pair) for pair in pairs)),
        cumulative=True,
        caveats=line_end(raw),
    )


def _pair(
    raw: RawFile, names: tuple[int, str], counts: tuple[int, str]
) -> Iterator[Measurement]:
    """Yield the counters of one prefix."""
    prefix, *keys = names[1].split()
    again, *words = counts[1].split()
    fit = len(keys) == len(words) and all(map(_COUNT.fullmatch, words))
    if again != prefix or not fit:
        problem = f"{len(words)} numbers of {again!r} below {len(keys)} names"
        problem = f"{problem} of {prefix!r}; was it cut short?"
        raise CaptureError(raw.path, problem, where=str(counts[0]))
    prefix = prefix.removesuffix(":")
    for key, word in zip(keys, words, strict=True):
        name = prefix + key
        gauge = {"kind": "gauge"} if name in _GAUGES else {}
        if word[0] == "-" and not gauge:
            problem = f"{word} is not a count of {name}"
            raise CaptureError(raw.path, problem, where=str(counts[0]))
        yield Measurement(metric=f"event:{name}", value=int(word), labels=gauge)
