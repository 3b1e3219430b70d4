"""A process that has imported everything, and forks a kernel from itself on request.

Most of the time of a short notebook goes into starting Python and importing. Here that
is done once: a request is a line of JSON on standard input, its answer a line on
standard output. The process has one thread, so that a fork is safe; when its standard
input ends, because whoever started it is gone, it kills its kernels and leaves.
"""

import contextlib
import gc
import importlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TextIO

#: What a notebook of ours imports, and what a kernel is made of or looks for as it
#: starts.
_IMPORTED: Final = (
    "IPython.core.debugger", "IPython.core.pylabtools",
    "IPython.extensions.storemagic", "faulthandler", "ipykernel.debugger",
    "ipykernel.ipkernel", "ipykernel.kernelapp", "ipykernel.zmqshell",
    "matplotlib.backends.backend_svg", "matplotlib.pyplot", "numpy", "pandas", "pdb",
    "psutil", "pyarrow.pandas_compat", "scipy.stats", "seaborn.objects",
    "tornado.platform.asyncio", "tornado.queues",
    "patchstudy.profiles", "patchstudy.report.handed", "patchstudy.report.sections",
    "patchstudy.report.why", "patchstudy.report.summary",
)  # fmt: skip
#: Set in every kernel, whichever way it is started.
ENVIRONMENT: Final = {
    "PYTHONHASHSEED": "0",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    # A user's own back end would draw into a window or nowhere.
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    # The kernel starts among raw files of others: none may pass for a module.
    "PYTHONSAFEPATH": "1",
    # Kernels run side by side, and the order of a sum must not depend on the cores.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # Arrow's other allocators keep a thread of their own, which no fork may copy.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
READY: Final = {"ready": True}


def serve() -> None:
    """Import everything, then answer requests until standard input ends."""
    os.environ.pop("MPLBACKEND", None)  # the inline one needs a running kernel
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    _to_nowhere(1)
    for name in _IMPORTED:
        importlib.import_module(name)
    # Reads what every package announces, as each kernel would for its back end.
    importlib.import_module("matplotlib.backends").backend_registry.list_all()
    gc.collect()
    gc.freeze()  # or the first collection of every kernel would copy it all
    _answer(answers, READY)
    kernels: set[int] = set()
    for line in sys.stdin:
        asked = json.loads(line)
        if "fork" in asked:
            pid = _forked(asked["fork"])
            kernels.add(pid)
            _answer(answers, {"pid": pid})
        else:
            _answer(answers, {"status": _status(asked["poll"], kernels)})
    for pid in kernels:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def _answer(answers: TextIO, told: Mapping[str, object]) -> None:
    answers.write(json.dumps(told) + "\n")
    answers.flush()


def _status(pid: int, kernels: set[int]) -> int | None:
    """Return the exit status of a kernel; None while it runs."""
    if pid not in kernels:
        return 0
    found, status = os.waitpid(pid, os.WNOHANG)
    if found == 0:
        return None
    kernels.discard(pid)
    return os.waitstatus_to_exitcode(status)


def _forked(asked: Mapping[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        _become_kernel(asked)
    finally:
        os._exit(1)  # never back into the loop of the parent


def _become_kernel(asked: Mapping[str, Any]) -> None:
    """Be what ``python -m ipykernel_launcher`` would be.

    Parameters
    ----------
    asked
        ``argv`` after the program's name, ``cwd``, ``env``, and ``memory_byte`` or
        None.
    """
    os.setsid()
    for descriptor in (0, 1, 2):
        _to_nowhere(descriptor)
    os.environ.clear()
    os.environ.update(asked["env"])
    time.tzset()
    os.chdir(asked["cwd"])
    _bound(asked["memory_byte"])
    _reseed()
    sys.argv = [str(importlib.import_module("ipykernel_launcher").__file__)]
    _run(asked["argv"])


def _to_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _bound(memory_byte: int | None) -> None:
    """Let a kernel fail before the machine does; of all processes, let it go first."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    if memory_byte is not None:
        limit_memory(0, memory_byte)


def limit_memory(pid: int, memory_byte: int) -> None:
    """Bound the memory of a process, 0 for this one, where the system can."""
    try:
        from resource import RLIMIT_DATA, prlimit  # noqa: PLC0415 - Linux only
    except ImportError:
        return
    with contextlib.suppress(OSError, ValueError):
        prlimit(pid, RLIMIT_DATA, (memory_byte, memory_byte))


def _reseed() -> None:
    """Give the kernel random numbers of its own: those of the parent are copied."""
    numpy = importlib.import_module("numpy")
    random.seed()
    numpy.random.seed()


def _run(argv: list[str]) -> None:
    from ipykernel.kernelapp import IPKernelApp  # noqa: PLC0415 - in this process only

    app = IPKernelApp.instance(parent_handle=os.getppid())
    app.initialize(argv)
    _set_up()
    app.start()


def _set_up() -> None:
    """Redo what matplotlib and pandas settle when they are imported in a kernel."""
    import matplotlib as mpl  # noqa: PLC0415 - imported long ago
    import pandas as pd  # noqa: PLC0415

    # pyplot has not taken a back end yet: it will take this one when it draws.
    mpl.rcParams["backend"] = os.environ.get("MPLBACKEND", ENVIRONMENT["MPLBACKEND"])
    pd.set_option("display.max_columns", 20)
