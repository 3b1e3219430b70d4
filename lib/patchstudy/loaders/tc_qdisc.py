"""Read ``tc -s qdisc``, JSON or text: the counters of every queueing discipline.

The keys are those of ``print_qdisc`` and ``print_tcstats2_attr`` in tc/ of iproute2,
from the kernel's ``struct gnet_stats_basic`` and ``gnet_stats_queue``: ``bytes`` and
``packets`` that left (bytes count 64 bits, the others 32), ``drops`` of packets,
``overlimits`` and ``requeues`` as counts, ``backlog`` in bytes. The backlog is a state,
not a counter, and gets the label ``kind`` with ``gauge``; text rounds a large one
(``12Kb``), which is left out. The options are facts as printed: a rate is bytes per
second in JSON and bits per second in text.

A root and its leaves show the same packets: never add them. A qdisc is told by
``qdisc`` (its kind), ``handle`` and ``interface``; where the handle is ``0:``, as below
``mq``, by ``parent`` too. Text of a single interface does not name it.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import queueing
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, Measurement, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "event:*": 'JSON: [].<key>; text: the line "Sent" and the line "backlog"',
    "drops": 'JSON: [].drops; text: "dropped" in the line "Sent"',
}
_JSON = re.compile(
    r'\s*\[\s*(?:\{\s*\}\s*,\s*)*\{\s*"kind"\s*:\s*"[^"]*"\s*,\s*"handle"\s*:'
)
_TEXT = re.compile(
    r"qdisc (?P<kind>\S+) (?P<handle>[\da-f]*:)(?: \[offloaded\])?"
    r"(?: dev (?P<dev>\S+))?"
    r"(?: (?P<root>root)| parent (?P<parent>\S+)| ingress| clsact)?"
    r"(?P<options> .*)?"
)
_FACTS = ("kind", "handle", "dev", "root", "parent", "options")


def sniff(raw: RawFile) -> bool:
    """Say whether it is a list of objects ``kind`` and ``handle``, or text like it."""
    first = raw.head.lstrip().partition("\n")[0].rstrip()
    return _JSON.match(raw.head) is not None or _TEXT.fullmatch(first) is not None


def load(raw: RawFile) -> Capture:
    """Read the counters of every qdisc, and its drops of the packets it was given."""
    text = _JSON.match(raw.head) is None
    queues = queueing.of_text(raw, _TEXT) if text else queueing.of_json(raw, "kind")
    measurements = tuple(chain.from_iterable(_qdisc(one) for one in queues))
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
                {key: one.facts[key] for key in _FACTS if key in one.facts}
                for one in queues
            ]
        },
        caveats=line_end(raw) if text else (),
    )


def _qdisc(queue: queueing.Queue) -> Iterator[Measurement]:
    """Yield the readings of one qdisc."""
    labels, counts = _labels(queue.facts), queue.counters
    yield from queueing.readings(queue, "qdisc", labels)
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
