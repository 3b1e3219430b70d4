"""How many studies can be done at once: by cores, and by memory."""

import os
from pathlib import Path
from typing import Final

#: What a kernel with a large study may need; `benchmarks/batch.py` measures it.
_STUDY_BYTE: Final = 2**30
_KIB: Final = 1024
_CGROUPS: Final = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes",
     "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)  # fmt: skip


def jobs() -> int:
    """Return how many studies the cores and the memory of this machine allow."""
    free = free_byte()
    by_memory = cores() if free is None else free // _STUDY_BYTE
    return max(1, min(cores(), by_memory))


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share_byte(jobs: int) -> int | None:
    """Return what each of so many kernels may hold; None where it is not known."""
    free = free_byte()
    return None if free is None else max(free // jobs, _STUDY_BYTE)


def free_byte() -> int | None:
    """Return the memory that is free for us, within the bounds of a container."""
    told = [_available(), *(_left(*one) for one in _CGROUPS)]
    known = [one for one in told if one is not None]
    return min(known, default=None)


def _available() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    sizes = {line.partition(":")[0]: line.split()[1] for line in lines if ":" in line}
    return int(sizes["MemAvailable"]) * _KIB if "MemAvailable" in sizes else None


def _left(limit: str, used: str) -> int | None:
    """Return what a control group may still take; None where it has no limit."""
    try:
        most = Path(limit).read_text(encoding="ascii").strip()
        now = Path(used).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(most) - int(now) if most.isdecimal() else None
