"""Read folded stacks: one call stack a line, with its weight.

The format of FlameGraph's stackcollapse scripts and of ``inferno``:
``outermost;...;leaf 12``. The weight is a number of samples or a period; the file
tells neither which, nor the event. Frames are kept as written, with ``_[k]`` and the
like. The first frame is often the command's name, with or without its process number.
"""

import re

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import head_lines, line_end, lines
from patchstudy.records import Capture, Profile, RawFile, Stack

_WEIGHT = re.compile(r"\d{1,20}(?:\.\d{0,40})?")


def sniff(raw: RawFile) -> bool:
    """Say whether at least half of the first lines are frames and a number."""
    if b";" not in raw.data[:8192]:
        return False
    top = head_lines(raw) or [raw.text.partition("\n")[0]]
    fitting = sum(";" in line and _weights(line) > 0 for line in top)
    return 0 < len(top) <= 2 * fitting


def load(raw: RawFile) -> Capture:
    """Read every stack; ``facts`` hold their number and the sum of the weights."""
    rows = lines(raw)
    if all(_weights(line) == 2 for _, line in rows):
        problem = (
            "two counts a line: a difference of two profiles; give the two profiles"
        )
        raise CaptureError(raw.path, problem, where=str(rows[0][0]))
    profile = Profile(
        event=None, unit=None, stacks=tuple(_stack(raw, *row) for row in rows)
    )
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="folded",
        profiles=(profile,),
        facts={"stacks": len(profile.stacks), "total": profile.total},
        caveats=line_end(raw),
    )


def _weights(line: str) -> int:
    """Return how many numbers stand at the end of a line, behind the frames: 0 to 2."""
    last = line.rsplit(maxsplit=2)[1:]
    fits = [_WEIGHT.fullmatch(word) is not None for word in last]
    return 2 if fits == [True, True] else int(fits[-1:] == [True])


def _stack(raw: RawFile, number: int, line: str) -> Stack:
    """Return the stack of one line."""
    if not _weights(line):
        problem = f"{line.strip()[:60]!r} does not end in a weight; remove the line"
        raise CaptureError(raw.path, problem, where=str(number))
    stack, weight = line.strip().rsplit(maxsplit=1)
    return Stack(
        frames=tuple(stack.split(";")),
        weight=float(weight) if "." in weight else int(weight),
    )
