"""Running notebooks: our own Python, known parameters, failures in one line."""

import asyncio
import gc
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import papermill
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from patchstudy.errors import StudyError
from patchstudy.report import engine, run
from patchstudy.report.engine import NAME, PLAIN
from patchstudy.report.html import to_html
from patchstudy.report.run import Run, execute

PARAMETERS = new_code_cell(
    "study = ''\nalpha: float = 0.05", metadata={"tags": ["parameters"]}
)


@pytest.fixture
def notebook(tmp_path):
    """Return a function that writes a notebook of these code cells."""

    def write(*sources):
        cells = [PARAMETERS, *map(new_code_cell, sources)]
        path = tmp_path / "report.ipynb"
        nbformat.write(new_notebook(cells=cells), path)
        return path

    return write


def executed(path, timeout_s=60, engine=NAME, memory_byte=None, **parameters):
    return execute(
        Run(
            notebook=path,
            parameters=parameters,
            cwd=path.parent,
            timeout_s=timeout_s,
            engine=engine,
            memory_byte=memory_byte,
        )
    )


def printed(node):
    """Return all that the cells of a notebook printed."""
    outputs = [output for cell in node.cells for output in cell.get("outputs", [])]
    return "".join(output.get("text", "") for output in outputs)


def error_of(path, timeout_s=60, **parameters):
    with pytest.raises(StudyError) as caught:
        executed(path, timeout_s=timeout_s, **parameters)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_our_python_runs_whatever_kernels_are_installed(
    notebook, tmp_path, monkeypatch, capfd
):
    kernel = tmp_path / "data" / "kernels" / "python3" / "kernel.json"
    kernel.parent.mkdir(parents=True)
    spec = {"argv": ["/bin/false"], "display_name": "other", "language": "python"}
    kernel.write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PATH", "/usr/bin")
    done = executed(notebook("import sys; print(sys.executable)"))
    assert printed(done).strip() == sys.executable
    assert capfd.readouterr() == ("", "")


def test_the_surroundings_are_the_same_everywhere(notebook, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("MPLBACKEND", "agg")
    here = Path.cwd()
    path = notebook(
        "import os, sys\nprint(os.getcwd(), '' in sys.path, hash('a') == hash('a'))",
        "for name in 'PYTHONHASHSEED LC_ALL TZ'.split(): print(os.environ[name])",
        "import matplotlib.pyplot as plt; plt.plot([1]);",
    )
    done = executed(path)
    assert printed(done).split() == [
        str(path.parent.resolve()), "False", "True", "0", "C.UTF-8", "UTC",
    ]  # fmt: skip
    assert "image/png" in done.cells[-1].outputs[-1].data
    assert Path.cwd() == here


def test_two_runs_give_equal_notebooks_and_pages(notebook):
    path = notebook(
        "import time\nfor _ in range(9): print(study, flush=True); time.sleep(0.02)"
    )
    study = 'a "b" \\ {c} \u202e\n'
    first, second = (executed(path, study=study) for _ in range(2))
    assert nbformat.writes(first) == nbformat.writes(second)
    assert to_html(first, title="T") == to_html(second, title="T")
    assert printed(first) == f"{study}\n" * 9
    assert first.metadata.papermill == {"parameters": {"study": study}}
    assert first.cells[1].id == "injected-parameters"
    assert all(set(cell.metadata) <= {"tags"} for cell in first.cells)


def test_notebooks_run_side_by_side_and_leave_nothing_open(notebook):
    path = notebook("print(study)")
    with ThreadPoolExecutor(2) as pool:
        done = pool.map(lambda study: executed(path, study=study), ["a", "b", "c"])
        assert [printed(node) for node in done] == ["a\n", "b\n", "c\n"]
    gc.collect()  # what was left open would warn now, and warnings are errors


@pytest.mark.parametrize("name", ["patch.ipynb", "explore.ipynb"])
def test_a_notebook_comes_out_the_same_whichever_way_it_is_run(name, data):
    path = data.parent / "notebooks" / name
    study = "../data/qmi_wwan/same-module-sequential"
    forked, plain = (
        nbformat.writes(executed(path, 600, engine, study=study))
        for engine in (NAME, PLAIN)
    )
    assert forked == plain


def test_a_forked_kernel_shares_no_state_with_the_next(notebook):
    path = notebook(
        "import numpy, random, os\n"
        "print(numpy.random.rand(), random.random(), os.getpid())",
        "numpy.leftover = 1",
    )
    first, second = (printed(executed(path)).split() for _ in range(2))
    assert all(one != other for one, other in zip(first, second, strict=True))
    assert "leftover" not in printed(
        executed(notebook("import numpy; print([x for x in dir(numpy) if x > 'l'])"))
    )


def test_where_nothing_can_be_forked_a_line_says_so_and_it_runs(
    notebook, monkeypatch, capfd
):
    monkeypatch.setattr(engine._Server, "_only", None)
    monkeypatch.setattr(engine, "_START", "raise SystemExit(1)")
    path = notebook("print(study)")
    assert [printed(executed(path, study=one)) for one in "ab"] == ["a\n", "b\n"]
    assert capfd.readouterr().err == (
        "patchstudy: the process that kernels are forked from did not start; "
        "each notebook starts its own kernel\n"
    )


def test_a_forked_kernel_has_imported_nearly_everything_already(notebook):
    every = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    program = (
        "import importlib; from patchstudy.report.kernels import _IMPORTED\n"
        f"for name in _IMPORTED: importlib.import_module(name)\n{every}"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    cells = ("import patchstudy as ps\nfrom patchstudy import sections, why", every)
    there = json.loads(printed(executed(notebook(*cells))))
    later = set(there) - set(json.loads(done.stdout.splitlines()[-1]))
    # each is small; the debugger alone would be over a hundred
    assert len(later) < 20, sorted(later)


def _client(alive):
    """Return a client of a kernel that never answers."""

    class Manager(AsyncKernelManager):
        async def is_alive(self):
            return alive

    manager = engine._warm_manager(Manager)(kernel_name="python3")
    manager.write_connection_file()
    client = manager.client()
    client.start_channels()
    return client


@pytest.mark.parametrize(
    ("alive", "problem"),
    [
        (True, "the kernel did not answer in 0.1 seconds"),
        (False, "the kernel died before it answered"),
    ],
)
def test_a_kernel_that_never_answers_is_not_waited_for(alive, problem):
    async def waited():
        client = _client(alive=alive)
        try:
            await client.wait_for_ready(timeout=0.1)
        finally:
            client.stop_channels()
            client.parent.cleanup_connection_file()

    # in a thread: a browser of other tests keeps a loop running in this one
    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match=problem):
        pool.submit(lambda: asyncio.run(waited())).result()


def test_others_can_use_the_engine_with_papermill(notebook, tmp_path, capfd):
    out = tmp_path / "out.ipynb"
    papermill.execute_notebook(
        str(notebook("print(study)")),
        str(out),
        {"study": "x"},
        engine_name=NAME,
        kernel_name="python3",
        language="python",
        progress_bar=False,
    )
    assert printed(nbformat.read(out, 4)) == "x\n"
    capfd.readouterr()


@pytest.mark.parametrize("way", [NAME, PLAIN])
def test_a_kernel_that_wants_too_much_memory_fails_in_its_cell(notebook, way):
    path = notebook("print('so far')\nx = bytearray(3 * 2**30)")
    with pytest.raises(StudyError) as caught:
        executed(path, engine=way, memory_byte=2 * 2**30)
    assert str(caught.value) == (
        "report.ipynb: cell \"print('so far')\": MemoryError "
        "(it may hold 2.0 GiB; see --memory); last output 'so far'"
    )


def test_a_kernel_that_dies_while_it_reads_is_reported_with_the_file(notebook):
    path = notebook(
        "import os, signal\n"
        "from pathlib import Path\n"
        "from patchstudy.loaders.noted import noted",
        "with noted(Path('a/tcp.json')): os.kill(os.getpid(), signal.SIGKILL)",
    )
    assert error_of(path).endswith(
        "its kernel died; was memory short?; reading 'a/tcp.json'"
    )


@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="needs /proc")
def test_kernels_go_with_whoever_started_them(notebook):
    path = notebook("import time; time.sleep(600)")
    program = (
        "from pathlib import Path\n"
        "from patchstudy.report.run import Run, execute\n"
        f"path = Path({str(path)!r})\n"
        "execute(Run(notebook=path, parameters={}, cwd=path.parent, timeout_s=600))\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        kernels = waited(lambda: kernels_below(running.pid))
        running.kill()
    assert kernels
    assert waited(lambda: not any(map(alive, kernels)))


def waited(condition):
    """Return what a condition comes to, as soon as it holds."""
    ends = time.monotonic() + 120
    while not (found := condition()) and time.monotonic() < ends:
        time.sleep(0.05)
    return found


def alive(pid):
    """Tell whether a process runs; a dead one that nobody asked for does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def kernels_below(pid):
    """Return the grandchildren of a process: what the warm process forked."""
    return [two for one in children(pid) for two in children(one)]


def children(pid):
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = path.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == pid:
            found.append(int(path.parent.name))
    return found


def test_the_source_is_not_written_to(notebook):
    path = notebook("print(1)")
    before = path.read_bytes()
    executed(path)
    assert path.read_bytes() == before


def test_a_cell_that_fails_is_named_with_its_error(notebook):
    path = notebook("\nratio = 1 / 0\nprint(ratio)", "print('never')")
    assert error_of(path) == (
        "report.ipynb: cell 'ratio = 1 / 0': ZeroDivisionError: division by zero"
    )


def test_a_killed_kernel_is_no_success(notebook, capfd):
    path = notebook("import os, signal", "os.kill(os.getpid(), signal.SIGKILL)")
    assert error_of(path) == (
        "report.ipynb: cell 'os.kill(os.getpid(), signal.SIGKILL)': "
        "its kernel died; was memory short?"
    )
    assert capfd.readouterr() == ("", "")


def test_a_cell_that_takes_too_long_is_stopped(notebook):
    path = notebook("import time; time.sleep(60)")
    problem = "took too long and was stopped"
    assert error_of(path, timeout_s=1) == (
        f"report.ipynb: cell 'import time; time.sleep(60)': {problem}"
    )


def test_a_notebook_that_leaves_early_is_no_success(notebook):
    path = notebook("raise SystemExit(0)", "print('never')")
    assert "did not run to its end" in error_of(path)


def test_a_folder_that_is_not_there_is_named(notebook, tmp_path):
    with pytest.raises(StudyError, match=r"report.ipynb: could not be run: .*nowhere"):
        execute(
            Run(
                notebook=notebook("1"),
                parameters={},
                cwd=tmp_path / "nowhere",
                timeout_s=60,
            )
        )


def test_a_misspelt_parameter_is_refused_with_the_known_ones(notebook):
    assert error_of(notebook("1"), studi="x") == (
        "report.ipynb: takes no parameter 'studi'; known: study, alpha"
    )


def test_a_notebook_without_parameters_says_so(tmp_path):
    path = tmp_path / "plain.ipynb"
    nbformat.write(new_notebook(cells=[new_markdown_cell("text")]), path)
    assert "known: none: it has no cell tagged 'parameters'" in error_of(
        path, study="x"
    )


@pytest.mark.parametrize("value", [("a",), {"a": 1}, float("nan"), float("inf"), b"a"])
def test_only_text_and_finite_numbers_are_parameters(notebook, value):
    problem = f"'study' is {value!r}; give text or a finite number"
    assert error_of(notebook("1"), study=value) == f"report.ipynb: {problem}"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param("{", "not a notebook of format 4", id="cut short"),
        pytest.param("[]", "not a notebook of format 4", id="a list"),
        pytest.param("{}", "not a notebook of format 4", id="no cells"),
        pytest.param('{"cells": 1}', "not a notebook of format 4", id="not cells"),
        pytest.param("\udcff", "not a notebook of format 4", id="not UTF-8"),
        pytest.param(None, "cannot be read: No such file", id="not there"),
    ],
)
def test_what_is_no_notebook_is_an_error(tmp_path, content, problem):
    path = tmp_path / "x.ipynb"
    if content is not None:
        path.write_text(content, encoding="utf-8", errors="surrogateescape")
    assert error_of(path).startswith(f"x.ipynb: {problem}")


def test_old_outputs_and_missing_cell_names_do_no_harm(tmp_path):
    cell = {"cell_type": "code", "metadata": {}, "source": ["1\n", "2"]}
    cell |= {"outputs": [], "execution_count": 7}
    content = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    path = tmp_path / "old.ipynb"
    path.write_text(json.dumps(content), encoding="utf-8")
    node = run._read(path)
    assert node.cells[0].id == "cell-0"
    assert node.cells[0].source == "1\n2"
    assert node.cells[0].execution_count is None
