"""Read ``ip -s -j link``: the counters of every network interface.

The keys are those of ``print_stats64`` in ip/ipaddress.c of iproute2, from the kernel's
``struct rtnl_link_stats64`` (64 bits wide, though some drivers count in 32) or, as
``stats``, from the older 32-bit ``struct rtnl_link_stats``. With ``-s -s`` the causes
of errors are there too. Bytes, packets and counts. ``dropped`` does not contain
``missed_errors``, while the column of /proc/net/dev does.
"""

import re
from collections.abc import Iterator
from itertools import chain

from patchstudy.errors import CaptureError
from patchstudy.loaders import interfaces
from patchstudy.loaders.text import counter, json_value
from patchstudy.records import Capture, Measurement, RawFile

_START = re.compile(r'\s*\[\s*(?:\{\s*\}\s*,\s*)*\{\s*"ifindex"\s*:')


def sniff(raw: RawFile) -> bool:
    """Say whether it is a list of objects that begin with ``ifindex``."""
    return _START.match(raw.head) is not None


def load(raw: RawFile) -> Capture:
    """Read the counters of every interface, and its errors and drops of packets."""
    value = json_value(raw)
    links = value if isinstance(value, list) else []
    named = [link for link in links if isinstance(link, dict) and "ifname" in link]
    measurements = tuple(chain.from_iterable(_link(raw, link) for link in named))
    if not measurements:
        raise CaptureError(raw.path, "holds no counters; call ip with -s -j link")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="ip_link",
        measurements=measurements,
        cumulative=True,
        counter_bits=64 if all("stats64" in link for link in named) else 32,
        facts={"interfaces": {str(link["ifname"]): _facts(link) for link in named}},
    )


def _link(raw: RawFile, link: dict[str, object]) -> Iterator[Measurement]:
    """Yield the readings of one interface."""
    name = str(link["ifname"])
    stats = link.get("stats64", link.get("stats"))
    if not isinstance(stats, dict):
        return
    for direction in ("rx", "tx"):
        counters = stats.get(direction)
        if not isinstance(counters, dict):
            problem = f"the counters of {direction} are missing"
            raise CaptureError(raw.path, problem, where=name)
        where = f"{name}.{direction}"
        checked = {
            key: counter(raw, count, f"{where}.{key}")
            for key, count in counters.items()
        }
        yield from interfaces.readings(name, direction, checked)


def _facts(link: dict[str, object]) -> dict[str, object]:
    """Return what the set-up of the interface is."""
    return {key: link[key] for key in ("mtu", "qdisc") if key in link}
