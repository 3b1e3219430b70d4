"""Read folded stacks: one call stack a line, with its weight.

The format of FlameGraph's stackcollapse scripts and of ``inferno``:
``outermost;...;leaf 12``. The weight is a number of samples or a period; the file
tells neither which, nor the event. Frames are kept as written, with ``_[k]`` and the
like.

The first frame is often the name of the thread, with or without its process number, and
no function. It is taken for one, in all stacks, where one of them can only be a thread
of the kernel (``kworker/u3:0-tm``, ``swapper``), where all end in a process number, or
where what follows is where a thread begins (``_start``, ``ret_from_fork``).
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import head_lines, line_end, lines
from patchstudy.records import Capture, Profile, RawFile, Stack

_KERNEL_THREAD: Final = re.compile(
    r"(?:(?:ksoftirqd|kworker|migration|cpuhp|rcuop|rcuos|rcuog|rcuc|watchdog|irq)/\S.*|"
    r"swapper(?:/\d+)?|kswapd\d+|kcompactd\d+|khugepaged|kthreadd|rcu_(?:sched|preempt))"
    r"(?:-(?:\d+|\?)(?:/\d+)?)?"
)
_NUMBERED: Final = re.compile(r".*-(?:\d+|\?)(?:/\d+)?")
#: Where a thread begins, in user space or the kernel.
_BEGINS: Final = re.compile(
    r"(?:_start|__libc_start_(?:main|call_main)(?:_impl)?.*|_?_?clone3?|start_thread|"
    r"ret_from_fork(?:_asm)?|kthread|secondary_startup\w*|cpu_startup_entry|do_idle|"
    r"start_secondary|x86_64_start_kernel|entry_SYSCALL_64\w*|\[unknown\]|el0\w*)"
    r"(?:_\[k\])?"
)
_WEIGHT: Final = re.compile(r"\d{1,20}(?:\.\d{0,40})?")


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
    stacks = [_stack(raw, *row) for row in rows]
    if _threads_first(stacks):
        stacks = [_of_thread(one) for one in stacks]
    profile = Profile(event=None, unit=None, stacks=tuple(stacks))
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


def _threads_first(stacks: Sequence[Stack]) -> bool:
    """Say whether the first frame of every stack is the name of a thread."""
    roots = {one.frames[0] for one in stacks}
    if any(map(_KERNEL_THREAD.fullmatch, roots)) or all(
        map(_NUMBERED.fullmatch, roots)
    ):
        return True
    if any(map(_BEGINS.fullmatch, roots)):
        return False
    deep = [one for one in stacks if len(one.frames) > 1]
    begins = sum(one.weight for one in deep if _BEGINS.fullmatch(one.frames[1]))
    return 2 * begins > sum(one.weight for one in deep)


def _of_thread(stack: Stack) -> Stack:
    frames = stack.frames[1:] or ("[unknown]",)
    return replace(stack, frames=frames, comm=stack.frames[0])
