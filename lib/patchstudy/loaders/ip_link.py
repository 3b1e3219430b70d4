"""Read ``ip -s link`` or ``ip -s addr``, JSON or text: counters of every interface.

The keys are those of ``print_stats64`` in ip/ipaddress.c of iproute2, from the kernel's
``struct rtnl_link_stats64`` (64 bits wide, though some drivers count in 32) or, as
``stats``, from the older 32-bit ``struct rtnl_link_stats``. With ``-s -s`` the causes
of errors are there too. Bytes, packets and counts. ``dropped`` does not contain
``missed_errors``, while the column of /proc/net/dev does. In the text the columns are
named by their titles, which changed over time; the counters get the names of the JSON.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import interfaces, link_text
from patchstudy.loaders.text import counter, json_value, line_end, sequence
from patchstudy.records import Capture, Measurement, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "event:*": (
        "JSON: [].stats64.rx.<key> and tx.<key> (older: stats); text: the column "
        "below its title"
    ),
    "errors": "rx.errors and tx.errors",
    "drops": "rx.dropped and tx.dropped",
}
#: How a file begins that is of ``ip -j link`` and of nothing else.
OPENS = re.compile(r'\[\{"ifindex":\d+,"')
_JSON = re.compile(r'\s*\[\s*(?:\{\s*\}\s*,\s*)*\{\s*"ifindex"\s*:')
_SETUP = ("mtu", "qdisc")


def sniff(raw: RawFile) -> bool:
    """Say whether it is a list of objects with ``ifindex``, or text that begins so."""
    if _JSON.match(raw.head):
        return True
    first = raw.head.lstrip().partition("\n")[0].partition("\\")[0]
    return link_text.START.fullmatch(first.rstrip()) is not None


def load(raw: RawFile) -> Capture:
    """Read the counters of every interface, and its errors and drops of packets."""
    text = _JSON.match(raw.head) is None
    links, bits = (link_text.links(raw), 64) if text else _of_json(raw)
    measurements = tuple(
        chain.from_iterable(_readings(one.name, one.counters) for one in links)
    )
    if not measurements:
        raise CaptureError(raw.path, "holds no counters; call ip with -s -j link")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="ip_link",
        measurements=measurements,
        cumulative=True,
        counter_bits=bits,
        facts={"interfaces": {one.name: one.facts for one in links}},
        caveats=line_end(raw) if text else (),
    )


def _readings(
    name: str, counters: Mapping[str, Mapping[str, int]]
) -> Iterator[Measurement]:
    for direction, counts in counters.items():
        yield from interfaces.readings(name, direction, counts)


def _of_json(raw: RawFile) -> tuple[list[link_text.Link], int]:
    """Return the interfaces, and the width of their counters."""
    listed = sequence(json_value(raw))
    named = [link for link in listed if isinstance(link, dict) and "ifname" in link]
    bits = 64 if all("stats64" in link for link in named) else 32
    return [_link(raw, link) for link in named], bits


def _link(raw: RawFile, link: Mapping[str, object]) -> link_text.Link:
    """Return one interface."""
    name = str(link["ifname"])
    stats = link.get("stats64", link.get("stats"))
    facts = {key: link[key] for key in _SETUP if key in link}
    found = link_text.Link(name=name, facts=facts)
    if not isinstance(stats, dict):
        return found
    for direction in ("rx", "tx"):
        counters = stats.get(direction)
        if not isinstance(counters, dict):
            problem = f"the counters of {direction} are missing"
            raise CaptureError(raw.path, problem, where=name)
        where = f"{name}.{direction}"
        found.counters[direction] = {
            key: counter(raw, count, f"{where}.{key}")
            for key, count in counters.items()
        }
    return found
