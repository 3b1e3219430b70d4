"""Read tracefs ``kprobe_profile``: how often every kprobe was hit.

One line a probe: its event name, hits, and misses, that is hits that were not recorded
because another probe was running (``probes_profile_seq_show`` in
kernel/trace/trace_kprobe.c). Counts (unit 1), as wide as a long of the kernel, since
the probe was made. The file does not print the group of an event.
"""

import re

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import head_lines, line_end, lines
from patchstudy.records import Capture, Measurement, RawFile

_LINE = re.compile(r"  (\S+) +(\d{1,20}) +(\d{1,20})\s*")


def sniff(raw: RawFile) -> bool:
    """Say whether the first lines are an indented name and two whole numbers."""
    top = head_lines(raw)
    return bool(top) and all(_LINE.fullmatch(line) for line in top)


def load(raw: RawFile) -> Capture:
    """Read hits and misses of every probe."""
    measurements: list[Measurement] = []
    for number, line in lines(raw):
        match = _LINE.fullmatch(line)
        if match is None:
            problem = f"{line.strip()!r} is not a probe, its hits and its misses"
            raise CaptureError(raw.path, problem, where=str(number))
        probe, hits, misses = match.groups()
        for name, value in (("hits", hits), ("misses", misses)):
            measurements.append(
                Measurement(
                    metric=f"event:kprobe_{name}",
                    value=int(value),
                    labels={"probe": probe},
                )
            )
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="kprobe_profile",
        measurements=tuple(measurements),
        cumulative=True,
        caveats=line_end(raw),
    )
