"""Read ``tc -s -j qdisc``: the counters of every queueing discipline.

The keys are those of ``print_qdisc`` and ``print_tcstats2_attr`` in tc/ of iproute2,
from the kernel's ``struct gnet_stats_basic`` and ``gnet_stats_queue``: ``bytes`` and
``packets`` that left (bytes count 64 bits, the others 32), ``drops`` of packets,
``overlimits`` and ``requeues`` as counts, ``backlog`` in bytes. The backlog is a state,
not a counter, and gets the label ``kind`` with ``gauge``.

A root and its leaves show the same packets: never add them. A qdisc is told by
``qdisc`` (its kind), ``handle`` and ``interface``; where the handle is ``0:``, as below
``mq``, by ``parent`` too.
"""

import re
from collections.abc import Iterator
from itertools import chain

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import counter, json_value
from patchstudy.records import Capture, Measurement, RawFile

_START = re.compile(
    r'\s*\[\s*(?:\{\s*\}\s*,\s*)*\{\s*"kind"\s*:\s*"[^"]*"\s*,\s*"handle"\s*:'
)
_COUNTERS = ("bytes", "packets", "drops", "overlimits", "requeues")
_FACTS = ("kind", "handle", "dev", "root", "parent", "options")


def sniff(raw: RawFile) -> bool:
    """Say whether it is a list of objects that begin with ``kind`` and ``handle``."""
    return _START.match(raw.head) is not None


def load(raw: RawFile) -> Capture:
    """Read the counters of every qdisc, and its drops of the packets it was given."""
    value = json_value(raw)
    listed = value if isinstance(value, list) else []
    qdiscs = [one for one in listed if isinstance(one, dict) and "kind" in one]
    measurements = tuple(chain.from_iterable(_qdisc(raw, one) for one in qdiscs))
    if not measurements:
        raise CaptureError(raw.path, "holds no counters; call tc with -s -j qdisc")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="tc_qdisc",
        measurements=measurements,
        cumulative=True,
        facts={
            "qdiscs": [
                {key: one[key] for key in _FACTS if key in one} for one in qdiscs
            ]
        },
    )


def _qdisc(raw: RawFile, qdisc: dict[str, object]) -> Iterator[Measurement]:
    """Yield the readings of one qdisc."""
    labels = _labels(qdisc)
    where = " ".join(labels.values())
    counts = {
        key: counter(raw, qdisc[key], f"{where}.{key}")
        for key in (*_COUNTERS, "backlog")
        if key in qdisc
    }
    for key, count in counts.items():
        gauge = {"kind": "gauge"} if key == "backlog" else {}
        yield Measurement(
            metric=f"event:qdisc_{key}", value=count, labels={**labels, **gauge}
        )
    if "drops" in counts and "packets" in counts:
        yield Measurement(
            metric="drops",
            value=counts["drops"],
            labels={**labels, "direction": "tx"},
            exposure=counts["packets"] + counts["drops"],
        )


def _labels(qdisc: dict[str, object]) -> dict[str, str]:
    """Return what tells this qdisc from the others of the file."""
    names = {"kind": "qdisc", "handle": "handle", "dev": "interface"}
    if qdisc.get("handle") == "0:":
        names["parent"] = "parent"
    return {name: str(qdisc[key]) for key, name in names.items() if key in qdisc}
