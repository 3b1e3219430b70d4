"""Read ``tc -s class``, JSON or text: the counters of every class of a qdisc.

``print_class`` in tc/tc_class.c of iproute2; the counters are those of ``tc_qdisc``, as
``event:class_<key>``. Old versions print text for some classes even with ``-j``. A
parent shows the packets of its children too, and so does the qdisc: never add them. A
class is told by ``class`` (its kind), ``handle`` and, where the file tells it,
``interface``.
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
    "event:*": 'JSON: [].stats.<key>; text: the line "Sent" and the line "backlog"',
}
_JSON = re.compile(
    r'\s*\[\s*(?:\{\s*\}\s*,\s*)*\{\s*"class"\s*:\s*"[^"]*"\s*,\s*"handle"\s*:'
)
_TEXT = re.compile(
    r"class (?P<class>\S+) (?P<handle>[\da-f]*:[\da-f]*)(?: dev (?P<dev>\S+))?"
    r"(?: (?P<root>root)| parent (?P<parent>\S+))?(?: leaf (?P<leaf>\S+))?"
    r"(?P<options> .*)?"
)
_FACTS = ("class", "handle", "dev", "root", "parent", "leaf", "options")
_LABELS = {"class": "class", "handle": "handle", "dev": "interface"}


def sniff(raw: RawFile) -> bool:
    """Say whether it is a list of objects ``class`` and ``handle``, or text like it."""
    first = raw.head.lstrip().partition("\n")[0].rstrip()
    return _JSON.match(raw.head) is not None or _TEXT.fullmatch(first) is not None


def load(raw: RawFile) -> Capture:
    """Read the counters of every class."""
    text = _JSON.match(raw.head) is None
    queues = queueing.of_text(raw, _TEXT) if text else queueing.of_json(raw, "class")
    measurements = tuple(chain.from_iterable(_class(one) for one in queues))
    if not measurements:
        raise CaptureError(raw.path, "holds no counters; call tc with -s class")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="tc_class",
        measurements=measurements,
        cumulative=True,
        facts={
            "classes": [
                {key: one.facts[key] for key in _FACTS if key in one.facts}
                for one in queues
            ]
        },
        caveats=line_end(raw) if text else (),
    )


def _class(queue: queueing.Queue) -> Iterator[Measurement]:
    facts = queue.facts
    labels = {name: str(facts[key]) for key, name in _LABELS.items() if key in facts}
    yield from queueing.readings(queue, "class", labels)
