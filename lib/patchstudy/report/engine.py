"""papermill's engine with kernels that are forked from a warm process.

``papermill --engine patchstudy-warm`` runs any notebook with it, as ``patchstudy
report`` does. Where nothing can be forked, a line says so and each notebook starts a
kernel of its own; what comes out is the same.
"""

import asyncio
import atexit
import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from queue import Empty
from typing import Any, Final

from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from papermill.engines import (
    NBClientEngine,
    NotebookExecutionManager,
    papermill_engines,
)
from traitlets import default

from patchstudy.report.kernels import ENVIRONMENT, READY, limit_memory

NAME: Final = "patchstudy-warm"
#: papermill's own engine: a new process for every kernel.
PLAIN: Final = "nbclient"
#: Asks a kernel manager for a bound on the kernel's memory.
MEMORY: Final = "PATCHSTUDY_KERNEL_BYTES"

_LEAVING_S: Final = 0.005  # a killed kernel is gone after about so long
_AGAIN_MS: Final = 5  # between two looks whether a kernel has opened its sockets
_SILENCE_S: Final = 0.2  # after which a kernel is asked again whether it is there

_START: Final = "from patchstudy.report.kernels import serve; serve()"
_LAUNCHER: Final = "ipykernel_launcher"


class WarmEngine(NBClientEngine):
    """Runs the cells in a kernel forked from a process that has imported everything."""

    @classmethod
    def execute_managed_notebook(  # type: ignore[override]
        cls,
        nb_man: NotebookExecutionManager,
        kernel_name: str,
        **kwargs: Any,  # noqa: ANN401 - papermill's
    ) -> object:
        """Run the notebook, in an ordinary kernel where it cannot be otherwise."""
        wanted = kwargs.pop("kernel_manager_class", AsyncKernelManager)
        if _ours(wanted, kernel_name) and warm():
            kwargs["kernel_manager_class"] = _warm_manager(wanted)
            # Nothing is left to be tidied up: leave without ceremony.
            kwargs.setdefault("shutdown_kernel", "immediate")
        else:
            kwargs["kernel_manager_class"] = wanted
        return super().execute_managed_notebook(nb_man, kernel_name, **kwargs)


papermill_engines.register(NAME, WarmEngine)


def _ours(manager: type[AsyncKernelManager], kernel_name: str) -> bool:
    """Tell whether a kernel would be one of the Python that runs us."""
    spec: KernelSpec | None = manager(kernel_name=kernel_name).kernel_spec
    argv = list(spec.argv) if spec is not None else []
    ours = {sys.executable, "python", "python3", Path(sys.executable).name}
    return bool(argv) and argv[0] in ours and _LAUNCHER in argv


def warm() -> bool:
    """Tell whether kernels can be forked here; start the process they come from."""
    return _Server.instance().there()


def stop() -> None:
    """Stop the warm process and all its kernels, and start no other."""
    _Server.instance().stop()


class _Server:
    """The process that forks kernels; one, shared by all threads of this one."""

    _only: "_Server | None" = None
    _making = threading.Lock()

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._refused = False

    @classmethod
    def instance(cls) -> "_Server":
        """Return the one of this process: a forked copy has none."""
        with cls._making:
            if cls._only is None or cls._only.owner != os.getpid():
                cls._only = cls()
            return cls._only

    def there(self) -> bool:
        """Start the process where it is not there; False where it cannot be."""
        with self._lock:
            if self._refused:
                return False
            if self._process is not None and self._process.poll() is None:
                return True
            self._refused = not self._started()
            return not self._refused

    def _started(self) -> bool:
        if not hasattr(os, "fork"):
            _tell("kernels cannot be forked on this system")
            return False
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **ENVIRONMENT},
                start_new_session=True,  # a Ctrl-C is for us, not for the kernels
                text=True,
            )
            ready = self._read() == READY
        except (OSError, ValueError):
            ready = False
        if not ready:
            _tell("the process that kernels are forked from did not start")
        atexit.register(self.stop)
        return ready

    def ask(self, request: Mapping[str, object]) -> dict[str, Any]:
        """Send a request, return the answer.

        Raises
        ------
        OSError
            If the process is gone.
        """
        with self._lock:
            if self._process is None or self._process.stdin is None:
                raise BrokenPipeError("the process that kernels are forked from left")
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            return self._read()

    def _read(self) -> dict[str, Any]:
        process = self._process
        line = process.stdout.readline() if process and process.stdout else ""
        if not line:
            raise BrokenPipeError("the process that kernels are forked from left")
        return json.loads(line)

    def stop(self) -> None:
        """Stop the process; its kernels go with it."""
        if self.owner != os.getpid():
            return  # a copy of us that was forked: not its process
        with self._lock:
            self._refused = True
            process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue
        process.wait()


def _tell(problem: str) -> None:
    sys.stderr.write(f"patchstudy: {problem}; each notebook starts its own kernel\n")


class _Forked:
    """A forked kernel, as ``subprocess.Popen`` would show it."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, None while it runs."""
        if self.returncode is None:
            try:
                asked = {"poll": self.pid}
                self.returncode = _Server.instance().ask(asked)["status"]
            except OSError:
                self.returncode = -9
        return self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit status; called when it is known."""
        del timeout
        return self.poll()

    def send_signal(self, number: int) -> None:
        """Send a signal to the kernel and what it started."""
        if self.poll() is None:
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """Kill the kernel and what it started."""
        self.send_signal(9)

    def terminate(self) -> None:
        """Ask the kernel to leave."""
        self.send_signal(15)


class _ForkProvisioner(LocalProvisioner):
    """Asks the warm process for a kernel where ``LocalProvisioner`` starts one."""

    async def launch_kernel(
        self,
        cmd: list[str],
        **kwargs: Any,  # noqa: ANN401 - jupyter_client's
    ) -> KernelConnectionInfo:
        """Fork a kernel for the connection file that the command names."""
        env = dict(kwargs.get("env") or os.environ)
        limit = env.pop(MEMORY, None)
        cwd = Path(kwargs.get("cwd") or ".").resolve(strict=True)
        asked = {
            "argv": cmd[cmd.index(_LAUNCHER) + 1 :],
            "cwd": str(cwd),
            "env": env,
            "memory_byte": None if limit is None else int(limit),
        }
        answer = _Server.instance().ask({"fork": asked})
        self.process = _Forked(answer["pid"])  # type: ignore[assignment]
        self.pid = self.pgid = answer["pid"]
        return self.connection_info

    async def wait(self) -> int | None:
        """Wait until the kernel is gone; return its exit status, 0 where it was."""
        while (status := await self.poll()) is None:
            await asyncio.sleep(_LEAVING_S)
        self.process = None
        return status


class _PromptClient(AsyncKernelClient):
    """Goes on as soon as the kernel is idle, not when it was silent for a while."""

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401 - jupyter_client's
        super().__init__(**kwargs)
        self.context.reconnect_ivl = _AGAIN_MS  # of every socket it will make

    async def wait_for_ready(self, timeout: float | None = None) -> None:
        """Ask the kernel what it is until it answers and says that it is idle.

        Raises
        ------
        RuntimeError
            If it died, or did not answer in time.
        """
        began = time.monotonic()
        while not await self._answers(self.kernel_info()):
            if self.parent is None or not await self.parent.is_alive():
                raise RuntimeError("the kernel died before it answered")
            if timeout is not None and time.monotonic() - began > timeout:
                raise RuntimeError(f"the kernel did not answer in {timeout:g} seconds")

    async def _answers(self, asked: str) -> bool:
        """Tell whether a request was answered, and nothing more comes of it."""
        try:
            while not _is_of(await self.get_shell_msg(timeout=1), asked):
                continue
            while not _is_end(await self.get_iopub_msg(timeout=_SILENCE_S), asked):
                continue
        except Empty:
            return False
        return True


def _is_of(message: Mapping[str, Any], asked: str) -> bool:
    return message["parent_header"].get("msg_id") == asked


def _is_end(message: Mapping[str, Any], asked: str) -> bool:
    idle = message["content"].get("execution_state") == "idle"
    return idle and _is_of(message, asked)


class _PlainProvisioner(LocalProvisioner):
    """``LocalProvisioner`` with a bound on the memory of its kernel."""

    async def launch_kernel(
        self,
        cmd: list[str],
        **kwargs: Any,  # noqa: ANN401 - jupyter_client's
    ) -> KernelConnectionInfo:
        """Start the kernel, then bound it."""
        limit = (kwargs.get("env") or {}).pop(MEMORY, None)
        told = await super().launch_kernel(cmd, **kwargs)
        if limit is not None and self.pid:
            limit_memory(self.pid, int(limit))
        return told


def _warm_manager(base: type[AsyncKernelManager]) -> type[AsyncKernelManager]:
    class Manager(_with_provisioner(base, _ForkProvisioner)):  # type: ignore[misc]
        @default("client_factory")
        def _goes_on_at_once(self) -> type[AsyncKernelClient]:
            return _PromptClient

    return Manager


def plain_manager(base: type[AsyncKernelManager]) -> type[AsyncKernelManager]:
    """Return a kernel manager that bounds the memory of its kernels."""
    return _with_provisioner(base, _PlainProvisioner)


def _with_provisioner(
    base: type[AsyncKernelManager], provisioner: type[LocalProvisioner]
) -> type[AsyncKernelManager]:
    """Return a manager whose kernels are started by this provisioner."""

    class Manager(base):  # type: ignore[misc, valid-type]
        def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401 - jupyter_client's
            super().__init__(**kwargs)
            self.kernel_id = self.kernel_id or str(uuid.uuid4())
            self.provisioner = provisioner(
                parent=self, kernel_id=self.kernel_id, kernel_spec=self.kernel_spec
            )

    return Manager
