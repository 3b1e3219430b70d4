"""Read /proc/slabinfo: the kernel's caches of objects, as facts.

``cache_show`` in mm/slab_common.c, version 2.1: a row a cache with the objects in use,
the objects there are and the size of one in byte. Facts ``slabinfo`` by cache:
``active_objs``, ``num_objs``, ``objsize``. They are a state at one moment, no counters;
what stands behind the first ``:`` are tunables and slabs, which are not read.
"""

import re

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import line_end, lines
from patchstudy.records import Capture, RawFile

_VERSION = re.compile(r"slabinfo - version: (\d+\.\d+)(?: \(statistics\))?\s*")
_ROW = re.compile(r"(\S.*?)(?<! ) ++(\d{1,18}) +(\d{1,18}) +(\d{1,12}) +\d+ +\d+ : .*")


def sniff(raw: RawFile) -> bool:
    """Say whether the first line is the kernel's."""
    return _VERSION.match(raw.head) is not None


def load(raw: RawFile) -> Capture:
    """Read every cache.

    Raises
    ------
    CaptureError
        If a row is another one than version 2.1 prints, or there is none.
    """
    caches: dict[str, dict[str, int]] = {}
    for number, line in lines(raw)[1:]:
        if line.startswith("#"):
            continue
        row = _ROW.fullmatch(line.strip())
        if row is None:
            problem = f"{line.strip()[:60]!r} is not a cache and its numbers"
            raise CaptureError(raw.path, problem, where=str(number))
        told = zip(
            ("active_objs", "num_objs", "objsize"), row.groups()[1:], strict=True
        )
        caches[row[1]] = {name: int(value) for name, value in told}
    if not caches:
        raise CaptureError(
            raw.path, "holds no cache; was it read without the right to?"
        )
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="slabinfo",
        facts={"slabinfo": caches},
        caveats=line_end(raw),
    )
