"""Run a notebook with parameters, in the Python that runs us, and reproducibly."""

import ast
import logging
import math
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import nbformat
import papermill
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import ensure_event_loop
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode, v4
from papermill.exceptions import PapermillExecutionError
from traitlets import default

from patchstudy.errors import StudyError, printable
from patchstudy.report.engine import MEMORY, NAME, plain_manager
from patchstudy.report.kernels import ENVIRONMENT
from patchstudy.variables import PARSED, READING

# papermill reports what we raise as errors: to those who listen, not to the terminal.
logging.getLogger("papermill").addHandler(logging.NullHandler())

Scalar = str | int | float | bool | None

_START_S: Final = 300  # a busy machine may take minutes to start many kernels
# What nbformat raises for JSON, or not even JSON, of another shape.
_NO_NOTEBOOK: Final = (
    AttributeError,
    KeyError,
    TypeError,
    ValueError,
    nbformat.ValidationError,
)
_INJECTED: Final = "injected-parameters"
_LAST: Final = "last"
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+(?=>)")
_LONGEST_SOCKET: Final = 90  # the path of a Unix socket has 107 bytes at most
_LONGEST_OUTPUT: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A notebook, and how it is run.

    Attributes
    ----------
    notebook
        The source; it is not written to. Its cell tagged ``parameters`` names the
        parameters it takes.
    parameters
        Values by name.
    cwd
        Folder in which the kernel runs.
    timeout_s
        Longest time for all cells together.
    last
        Source of a cell that is run after all others; none where empty.
    engine
        papermill's name of what runs it.
    memory_byte
        What the kernel may hold of its own; None for no bound.
    parsed
        Folder in which what large traces say is kept; None for no such folder.
    """

    notebook: Path
    parameters: Mapping[str, Scalar]
    cwd: Path
    timeout_s: float
    last: str = ""
    engine: str = NAME
    memory_byte: int | None = None
    parsed: Path | None = None


class NotebookError(StudyError):
    """A cell of a notebook raised an error.

    Parameters
    ----------
    line
        Where and what, in one line.
    name, value
        Type and text of the error.
    """

    def __init__(self, line: str, *, name: str, value: str) -> None:
        super().__init__(line)
        self.name = name
        self.value = value


def execute(run: Run) -> NotebookNode:
    """Return the notebook with its outputs, equal for equal inputs.

    Raises
    ------
    NotebookError
        A cell failed.
    StudyError
        The notebook cannot be read, takes no such parameter, takes too long, or its
        kernel died; one line that names the cell, what it showed last, and the raw file
        that it was reading.
    """
    source = _read(run.notebook)
    _check(run.notebook, source, run.parameters)
    if run.last:
        source.cells.append(v4.new_code_cell(run.last, id=_LAST))
    with tempfile.TemporaryDirectory(prefix="patchstudy-") as settings:
        at = _Place(
            path=run.notebook,
            reading=Path(settings) / "reading",
            timeout_s=run.timeout_s,
            limit=run.memory_byte,
        )
        with _loop_closed(), _explained(at):
            done = papermill.execute_notebook(
                source,
                None,
                dict(run.parameters),
                engine_name=run.engine,
                kernel_name="python3",
                language="python",
                progress_bar=False,
                log_output=False,
                request_save_on_cell_execute=False,
                autosave_cell_every=0,
                start_timeout=_START_S,
                timeout_func=at.left_s,
                record_timing=False,
                kernel_manager_class=_manager(run, Path(settings)),
                on_cell_start=at.start,
                # Not papermill's own cwd: that one moves our whole process.
                resources={"metadata": {"path": str(run.cwd)}},
            )
    _check_complete(run.notebook, done)
    return _normalised(done, run.parameters)


def _read(path: Path) -> NotebookNode:
    """The notebook without outputs; cells without a name get a number."""
    try:
        node = v4.reads(path.read_text(encoding="utf-8"))
        for number, cell in enumerate(node["cells"]):
            cell.setdefault("id", f"cell-{number}")
        node["nbformat_minor"] = max(node["nbformat_minor"], 5)
        nbformat.validate(node)
    except OSError as error:
        raise _error(path, f"cannot be read: {error.strerror}") from error
    except _NO_NOTEBOOK as error:
        problem = str(error).partition("\n")[0]
        raise _error(path, f"not a notebook of format 4 ({problem})") from error
    return _without_outputs(node)


def _without_outputs(node: NotebookNode) -> NotebookNode:
    for cell in node.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return node


def _check(path: Path, source: NotebookNode, parameters: Mapping[str, Scalar]) -> None:
    known = _parameter_names(path, source)
    for name, value in parameters.items():
        if name not in known:
            names = ", ".join(known) or "none: it has no cell tagged 'parameters'"
            raise _error(path, f"takes no parameter {name!r}; known: {names}")
        if not _is_scalar(value):
            raise _error(path, f"{name!r} is {value!r}; give text or a finite number")


def _is_scalar(value: object) -> bool:
    """Of other types papermill makes text, or fails when the run is over."""
    if type(value) is float:
        return math.isfinite(value)
    return value is None or type(value) in {str, int, bool}


def _parameter_names(path: Path, source: NotebookNode) -> list[str]:
    cells = [
        one for one in source.cells if "parameters" in one.metadata.get("tags", [])
    ]
    try:
        lines = ast.parse("\n".join(cell.source for cell in cells)).body
    except SyntaxError as error:
        raise _error(path, f"cell 'parameters' is not Python: {error.msg}") from error
    return [
        target.id
        for line in lines
        if isinstance(line, ast.Assign | ast.AnnAssign)
        for target in (line.targets if isinstance(line, ast.Assign) else [line.target])
        if isinstance(target, ast.Name)
    ]


def _manager(run: Run, settings: Path) -> type[AsyncKernelManager]:
    """A kernel manager for the Python that runs us, whatever kernels are installed.

    Kernel specifications are looked up by name, in the user's folder first: one that
    is called ``python3`` there can belong to any Python. The kernel is reached by Unix
    sockets where their paths are short enough: no port, so none can be taken meanwhile.
    """
    env = {**ENVIRONMENT, "IPYTHONDIR": str(settings)}
    env[READING] = str(settings / "reading")
    env[PARSED] = "" if run.parsed is None else str(run.parsed.resolve())
    if run.memory_byte is not None:
        env[MEMORY] = str(run.memory_byte)
    spec = {**get_kernel_dict(), "env": env}
    quiet = f"--log-level={logging.CRITICAL}"
    spec["argv"] = [sys.executable, *spec["argv"][1:], quiet]
    kernel = KernelSpec(resource_dir="", **spec)
    socket = str(settings / "kernel")
    local = os.name == "posix" and len(socket) <= _LONGEST_SOCKET

    class Manager(AsyncKernelManager):
        @property
        def kernel_spec(self) -> KernelSpec:
            return kernel

        @default("transport")
        def _unix_where_it_can_be(self) -> str:
            return "ipc" if local else "tcp"

        @default("ip")
        def _its_own_socket(self) -> str:
            return socket if local else "127.0.0.1"

        @default("connection_file")
        def _gone_with_the_settings(self) -> str:
            return str(settings / "kernel.json")

    return Manager if run.engine == NAME else plain_manager(Manager)


@dataclass(kw_only=True)
class _Place:
    """Where a run is: papermill tells neither after a time-out nor after a death.

    Attributes
    ----------
    reading
        File in which the kernel notes the raw file that it reads.
    timeout_s
        Longest time for all cells, from the start of the first.
    limit
        Bound on the kernel's memory, in bytes.
    """

    path: Path
    reading: Path
    timeout_s: float
    limit: int | None
    cell: NotebookNode | None = None
    began: float = 0.0

    def start(self, cell: NotebookNode, cell_index: int) -> None:
        """Remember the cell that starts now."""
        del cell_index  # given by name
        self.began = self.began or time.monotonic()
        self.cell = cell

    def left_s(self, cell: NotebookNode) -> float:
        """Return what is left of the time for all cells."""
        del cell
        left = self.began + self.timeout_s - time.monotonic()
        return max(left, 0.001)  # 0 would be for ever

    def line(self, problem: str) -> str:
        """Return a line that names the cell, where one had started."""
        if self.cell is None:
            return printable(f"{self.path.name}: {problem}")
        shown = "".join(
            f"; {what} {printable(told[-_LONGEST_OUTPUT:])!r}"
            for what, told in (("reading", self._read()), ("last output", self._last()))
            if told
        )
        first = _first_line(self.cell.source)
        return printable(f"{self.path.name}: cell {first!r}: {problem}{shown}")

    def _read(self) -> str:
        """The raw file that the kernel was reading; empty where it read none."""
        try:
            return self.reading.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return ""

    def _last(self) -> str:
        """The last line that the cell showed, of an error its text excepted."""
        told = [
            line
            for output in (self.cell or {}).get("outputs", [])
            if output.output_type == "stream"
            for line in str(output.text).splitlines()
            if line.strip()
        ]
        return told[-1].strip() if told else ""


@contextmanager
def _loop_closed() -> Iterator[None]:
    """Close the event loop that the kernel's client opens in a thread of a pool."""
    try:
        yield
    finally:
        if threading.current_thread() is not threading.main_thread():
            loop = ensure_event_loop()
            if not loop.is_running():
                loop.close()


@contextmanager
def _explained(at: _Place) -> Iterator[None]:
    """Turn what can go wrong in a run into one line."""
    try:
        yield
    except PapermillExecutionError as error:
        name, value = str(error.ename), str(error.evalue)
        problem = f"{name}: {value}" if value else name
        if name.endswith("MemoryError") and at.limit is not None:
            problem += f" (it may hold {at.limit / 2**30:.1f} GiB; see --memory)"
        raise NotebookError(at.line(problem), name=name, value=value) from error
    except CellTimeoutError as error:
        raise StudyError(at.line("took too long and was stopped")) from error
    except DeadKernelError as error:
        problem = "its kernel died; was memory short?"
        raise StudyError(at.line(problem)) from error
    except (RuntimeError, OSError) as error:
        reason = next(iter(str(error).splitlines()), "no reason given")
        raise StudyError(at.line(f"could not be run: {reason}")) from error


def _placeless(output: NotebookNode) -> NotebookNode:
    """Drop the addresses of objects from their descriptions."""
    plain = output.get("data", {}).get("text/plain")
    if isinstance(plain, str):
        output.data["text/plain"] = _ADDRESS.sub("", plain)
    return output


def _check_complete(path: Path, done: NotebookNode) -> None:
    """Believe the cells, not the absence of an exception."""
    for cell in done.cells:
        if cell.cell_type != "code" or not cell.source.strip():
            continue
        status = cell.metadata.get("papermill", {}).get("status")
        if cell.execution_count is None or status != "completed":
            line = _first_line(cell.source)
            raise _error(path, f"cell {line!r}: did not run to its end")


def _normalised(done: NotebookNode, parameters: Mapping[str, Scalar]) -> NotebookNode:
    """Drop what differs between two runs or two machines."""
    for cell in done.cells:
        cell.metadata.pop("execution", None)
        cell.metadata.pop("papermill", None)
        if _INJECTED in cell.metadata.get("tags", []):
            cell.id = _INJECTED
        if cell.cell_type == "code":
            cell.outputs = list(map(_placeless, _joined(cell.outputs)))
    done.metadata = nbformat.from_dict(
        {
            **{key: value for key, value in done.metadata.items() if key == "title"},
            "kernelspec": {
                "display_name": "Python 3 (ipykernel)",
                "language": "python",
                "name": "python3",
            },
            "language_info": {"name": "python"},
            "papermill": {"parameters": dict(parameters)},
        }
    )
    return done


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join text of one stream: where it was cut depends on the clock."""
    joined: list[NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else {}
        if output.output_type == "stream" and last.get("name") == output.name:
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def _error(path: Path, problem: str) -> StudyError:
    return StudyError(printable(f"{path.name}: {problem}"))


def _first_line(source: str) -> str:
    return next((line for line in source.splitlines() if line.strip()), "")
