"""Read ``nstat -j``: the kernel's protocol counters.

The names and values are those of /proc/net/snmp, /proc/net/snmp6 and /proc/net/netstat
(misc/nstat.c of iproute2): ``{"kernel": {"TcpRetransSegs": 12, ...}}``. Counters that
are 0 are left out unless nstat was called with ``-z``. With ``-a`` the values are since
boot; without it they count from the last call that left a history. The file does not
tell which: take both files of a pair with ``-a``, or with ``-as`` to keep the history.

All values are counts (unit 1), 64 bits wide, of the network namespace in which nstat
ran.
"""

import re

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import counter, json_value
from patchstudy.records import Capture, Measurement, RawFile

_START = re.compile(r'\s*\{\s*"kernel"\s*:\s*\{\s*(\}|"\w+"\s*:\s*-?\d)')


def sniff(raw: RawFile) -> bool:
    """Say whether it is an object ``kernel`` of names with numbers."""
    return _START.match(raw.head) is not None


def load(raw: RawFile) -> Capture:
    """Read every counter as a reading of ``event:<name>``."""
    value = json_value(raw)
    counters = value.get("kernel") if isinstance(value, dict) else None
    if not isinstance(counters, dict) or not all(counters) or not counters:
        raise CaptureError(raw.path, "holds no counter; call nstat with -a -j")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="nstat",
        measurements=tuple(
            Measurement(
                metric=f"event:{name}",
                value=counter(raw, count, f"kernel.{name}"),
            )
            for name, count in counters.items()
        ),
        cumulative=True,
    )
