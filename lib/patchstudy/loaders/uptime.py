"""Read /proc/uptime: seconds since boot.

Two decimal numbers (``uptime_proc_show`` in fs/proc/uptime.c): seconds since boot, time
of suspend included, and the idle seconds summed over all CPUs, which is not read. The
difference of two readings is the time that passed between them.
"""

import re

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, Measurement, RawFile

_LINE = re.compile(r"\s*(\d{1,12}\.\d\d) \d{1,15}\.\d\d\s*")


def sniff(raw: RawFile) -> bool:
    """Say whether it is one line of two numbers with two decimals."""
    return len(raw.data) < 100 and _LINE.fullmatch(raw.head) is not None


def load(raw: RawFile) -> Capture:
    """Read the seconds since boot as a reading of ``event:uptime``."""
    match = _LINE.fullmatch(raw.text)
    if match is None:
        raise CaptureError(raw.path, "not two numbers with two decimals each")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="uptime",
        measurements=(
            Measurement(
                metric="event:uptime", value=float(match.group(1)), resolution=0.01
            ),
        ),
        cumulative=True,
        caveats=line_end(raw),
    )
