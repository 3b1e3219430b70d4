"""Run a notebook with parameters, in the Python that runs us, and reproducibly."""

import ast
import logging
import math
import sys
import tempfile
import threading
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

from patchstudy.errors import StudyError, printable

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
_ENVIRONMENT: Final = {
    "PYTHONHASHSEED": "0",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    # A user's own back end would draw into a window or nowhere.
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    # The kernel starts among raw files of others: none may pass for a module.
    "PYTHONSAFEPATH": "1",
}


def execute(
    notebook: Path, parameters: Mapping[str, Scalar], *, cwd: Path, timeout_s: int
) -> NotebookNode:
    """Return the notebook with its outputs, equal for equal inputs.

    Parameters
    ----------
    notebook
        The source; it is not written to. Its cell tagged ``parameters`` names the
        parameters it takes.
    parameters
        Values by name.
    cwd
        Folder in which the kernel runs.
    timeout_s
        Longest time for one cell.

    Raises
    ------
    StudyError
        The notebook cannot be read, takes no such parameter, fails, takes too long,
        or its kernel died; one line that names the cell.
    """
    source = _read(notebook)
    _check(notebook, source, parameters)
    at = _Place(path=notebook)
    with tempfile.TemporaryDirectory(prefix="patchstudy-") as settings:
        manager = _manager({**_ENVIRONMENT, "IPYTHONDIR": settings})
        with _loop_closed(), _explained(at):
            done = papermill.execute_notebook(
                source,
                None,
                dict(parameters),
                kernel_name="python3",
                language="python",
                progress_bar=False,
                log_output=False,
                request_save_on_cell_execute=False,
                autosave_cell_every=0,
                start_timeout=_START_S,
                execution_timeout=timeout_s,
                record_timing=False,
                kernel_manager_class=manager,
                on_cell_start=at.start,
                # Not papermill's own cwd: that one moves our whole process.
                resources={"metadata": {"path": str(cwd)}},
            )
    _check_complete(notebook, done)
    return _normalised(done, parameters)


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


def _manager(environment: Mapping[str, str]) -> type[AsyncKernelManager]:
    """A kernel manager for the Python that runs us, whatever kernels are installed.

    Kernel specifications are looked up by name, in the user's folder first: one that
    is called ``python3`` there can belong to any Python.
    """
    spec = {**get_kernel_dict(), "env": dict(environment)}
    quiet = f"--log-level={logging.CRITICAL}"
    spec["argv"] = [sys.executable, *spec["argv"][1:], quiet]
    kernel = KernelSpec(resource_dir="", **spec)

    class Manager(AsyncKernelManager):
        @property
        def kernel_spec(self) -> KernelSpec:
            return kernel

    return Manager


@dataclass(kw_only=True)
class _Place:
    """Where a run is: papermill tells neither after a time-out nor after a death."""

    path: Path
    line: str = ""

    def start(self, cell: NotebookNode, cell_index: int) -> None:
        """Remember the cell that starts now."""
        del cell_index  # given by name
        self.line = _first_line(cell.source)

    def error(self, problem: str) -> StudyError:
        """Return an error that names the cell, where one had started."""
        place = f"cell {self.line!r}: " if self.line else ""
        return _error(self.path, f"{place}{problem}")


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
        raise at.error(f"{error.ename}: {error.evalue}") from error
    except CellTimeoutError as error:
        raise at.error("took too long and was stopped") from error
    except DeadKernelError as error:
        raise at.error("its kernel died; was memory short?") from error
    except (RuntimeError, OSError) as error:
        reason = next(iter(str(error).splitlines()), "no reason given")
        raise at.error(f"could not be run: {reason}") from error


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
            cell.outputs = _joined(cell.outputs)
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
