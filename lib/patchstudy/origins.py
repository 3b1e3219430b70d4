"""Where a frame of a call stack lies: kernel, module, user space, or the idle loop."""

import re
from functools import lru_cache
from typing import Final

from patchstudy.records import Stack

#: Marks of FlameGraph's stackcollapse: kernel, inlined, compiled at run time, waker.
_MARKS: Final = {"_[k]": "kernel", "_[i]": "", "_[j]": "user", "_[w]": "kernel"}
_MODULE: Final = re.compile(r"\[[\w-]+\]|.*\.ko(?:\.(?:gz|xz|zst))?")
_KERNEL: Final = re.compile(r"\[(?:kernel|guest\.kernel)[^\]]*\]|.*vmlinu[xz].*")
_UNKNOWN: Final = frozenset({"", "[unknown]", "unknown", "inlined"})
_USER: Final = frozenset({"[vdso]", "[vsyscall]", "[heap]", "[stack]", "[anon]"})
#: Where a CPU waits (include/linux/cpuidle.h, arch/*/kernel/process.c, idle drivers).
_IDLE: Final = frozenset(
    {
        "acpi_idle_do_entry", "acpi_idle_enter", "acpi_safe_halt", "arch_cpu_idle",
        "cpu_do_idle", "cpu_idle_poll", "cpuidle_enter", "cpuidle_enter_state",
        "cpuidle_idle_call", "default_idle", "default_idle_call", "do_idle",
        "intel_idle", "intel_idle_ibrs", "intel_idle_irq", "mwait_idle",
        "mwait_idle_with_hints", "native_safe_halt", "poll_idle",
        "pv_native_safe_halt", "r4k_wait", "__r4k_wait", "r4k_wait_irqoff",
        "xen_safe_halt",
    }
)  # fmt: skip


#: Where nothing tells it: a name alone says nothing.
NOT_TOLD: Final = "not told"


@lru_cache(maxsize=100_000)
def bare(frame: str) -> str:
    """Return the symbol without the mark of kernel, inlined or compiled code."""
    for mark in _MARKS:
        frame = frame.removesuffix(mark)
    return frame


def idle(stack: Stack) -> bool:
    """Say whether a stack ends in the idle loop of the kernel."""
    return bare(stack.frames[-1]).partition(".")[0] in _IDLE


def origin(stack: Stack, at: int = -1) -> str:
    """Return where the frame at this place lies; by default the leaf.

    ``"kernel"``, ``"module"``, ``"user"``, ``"idle"``, or ``"not told"``: a name alone
    says nothing, and folded stacks need not have marks. An inlined frame lies where its
    caller does.
    """
    at %= len(stack.frames)
    if at == len(stack.frames) - 1 and idle(stack):
        return "idle"
    for number in range(at, -1, -1):
        place = stack.objects[number] if number < len(stack.objects) else ""
        if found := _of_object(place) or _of_mark(stack.frames[number]):
            return found
        if place != "inlined" and not stack.frames[number].endswith("_[i]"):
            break
    return NOT_TOLD


@lru_cache(maxsize=100_000)
def _of_object(place: str) -> str:
    if place in _UNKNOWN:
        return ""
    if place in _USER:
        return "user"
    if _KERNEL.fullmatch(place):
        return "kernel"
    return "module" if _MODULE.fullmatch(place) else "user"


def _of_mark(frame: str) -> str:
    return next((kind for mark, kind in _MARKS.items() if frame.endswith(mark)), "")
