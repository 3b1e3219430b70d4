"""The same tasks by threads here and by processes of a cluster; stops and kills."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import replace
from importlib.util import find_spec

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from patchstudy.cli import main
from patchstudy.errors import StudyError
from patchstudy.report import batch, capacity, executors, gates, junit
from patchstudy.report.batch import Outcome


@pytest.fixture
def order(tmp_path):
    """Return an order by a notebook that takes a moment and prints its study."""
    cells = [
        new_code_cell("study = ''", metadata={"tags": ["parameters"]}),
        new_code_cell("import time; time.sleep(0.3)\nprint(study)"),
    ]
    path = tmp_path / "own.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    out = tmp_path / "reports"
    return batch.Order(out=out, formats=("text",), notebook=path, jobs=2)


def reported(folders, order):
    return batch.report_all(folders, order, tell=lambda _: None)


def files(folder):
    """Return the content of every file that is no record, by its path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".made.json"
    }


@pytest.fixture
def cluster(tmp_path):
    """Start a scheduler and three worker processes; return its address and them."""
    if find_spec("distributed") is None:
        pytest.skip("distributed is not installed: no cluster is tested")
    running = []

    def start(name, *words):
        command = [sys.executable, "-m", "distributed.cli." + name, *words]
        running.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))

    told = tmp_path / "scheduler.json"
    start("dask_scheduler", "--scheduler-file", str(told), "--port", "0",
          "--host", "127.0.0.1", "--no-dashboard")  # fmt: skip
    ends = time.monotonic() + 120
    while not told.is_file() and time.monotonic() < ends:
        time.sleep(0.1)
    for _ in range(3):
        start("dask_worker", "--scheduler-file", str(told), "--nthreads", "1",
              "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")  # fmt: skip
    address = json.loads(told.read_text())["address"]
    yield address.removeprefix("tcp://"), running[1:]
    for one in running:
        one.kill()
        one.wait()


def test_a_cluster_that_loses_a_worker_makes_the_same_bytes(
    made, order, cluster, tmp_path
):
    address, workers = cluster
    folders = [made(f"a/{number}", patched=100.0 + number) for number in range(8)]
    killed = []

    def tell(outcome):
        if not killed:
            workers[0].kill()
            killed.append(outcome.study)

    there = replace(order, executor=f"dask://{address}")
    outcomes = batch.report_all(folders, there, tell=tell)
    assert killed
    assert [one.error for one in outcomes] == [""] * len(folders)
    by_cluster = files(order.out)
    shutil.rmtree(order.out)
    assert all(one.ok for one in reported(folders, order))
    assert files(order.out) == by_cluster
    assert len(by_cluster) == 3 * len(folders)
    assert [one.made for one in reported(folders, there)] == [False] * len(folders)


@pytest.mark.parametrize(
    ("executor", "problem"),
    [
        ("slurm", "no executor 'slurm'; give local or dask://HOST:PORT"),
        ("dask://127.0.0.1:1", "dask://127.0.0.1:1: no scheduler answers there"),
    ],
)
def test_an_executor_that_is_not_there_is_named(
    executor, problem, made, order, monkeypatch
):
    monkeypatch.setattr(executors, "_PATIENCE_S", 1)
    with pytest.raises(StudyError, match=problem):
        reported([made()], replace(order, executor=executor))


def test_a_worker_with_other_libraries_is_refused(made, order):
    (task,) = batch.tasks([made()], order)
    settings = {**task.settings, "pandas": "1.0"}
    outcome = executors._done(replace(task, settings=settings))
    assert outcome.error.startswith("driver/patch: the worker has another pandas: ")
    assert outcome.error.endswith("not 1.0; install the same on all")


@pytest.fixture
def hears_ctrl_c():
    """Undo, for what is started, what a shell does to commands in its background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_batch_leaves_whole_reports_and_goes_on_from_there(
    hears_ctrl_c, number, made, order, tmp_path
):
    names = [f"a/{number}" for number in range(6)]
    for name in names:
        made(name)
    words = ["report", str(tmp_path / "data"), "-o", str(order.out), "--jobs", "1"]
    words += ["--notebook", str(order.notebook), "--formats", "text"]
    command = [sys.executable, "-m", "patchstudy", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == "a/0: accept\n"
        running.send_signal(number)
        told = running.stderr.read().splitlines()
    killed = number == signal.SIGKILL
    assert running.returncode == (-9 if killed else 130), told
    assert killed or told[-1] == "patchstudy: stopped; finished reports are whole"
    whole = {"report.ipynb", "report.json", "report.txt", ".made.json"}
    for name in names:
        found = {path.name for path in (order.out / name).glob("*")}
        assert found in ({*whole}, set()), name
    assert main([*words, "--explain"]) == 0
    before = {path: path.stat().st_ino for path in order.out.glob("a/0/report.*")}
    assert main(words) == 0
    assert before == {path: path.stat().st_ino for path in before}
    assert len(list(order.out.glob("a/*/report.json"))) == len(names)


def outcome(study, decision="accept", **told):
    whole = {"study": study, "decision": decision, "error": "", "unread": ()}
    return Outcome(**{**whole, **told})


BATCH = (
    outcome("a/fine", made=False),
    outcome("a/torn", "", error="a/torn/study.toml: x\na/torn/study.toml: \x1b[1m"),
    outcome("a/holed", unread=("run.json: not JSON",)),
    outcome("b/bad", "veto", worse=("router: loss",)),
)


def test_a_batch_in_one_line(tmp_path):
    assert gates.in_one_line(BATCH, tmp_path / "index.html") == (
        f"3 of 4 studies reported: {tmp_path / 'index.html'} "
        "(2 made, 1 up to date, 2 accept, 1 veto, 1 failed)"
    )


@pytest.mark.parametrize(
    ("names", "studies"),
    [((), ()), (("veto",), ("b/bad",)), (("worse",), ("b/bad", "c/slow"))],
)
def test_gates_name_the_studies_that_do_not_pass(names, studies):
    slow = outcome("c/slow", "mixed", worse=("router: throughput",))
    assert gates.shut((*BATCH, slow), names) == studies


def test_outcomes_as_junit():
    suite = ET.fromstring(junit.junit(BATCH))
    assert suite.attrib == {
        "name": "patchstudy", "tests": "4", "errors": "2", "failures": "1",
        "time": "0.000",
    }  # fmt: skip
    cases = {f"{x.get('classname')}/{x.get('name')}": x for x in suite}
    assert [one.tag for one in cases["a/fine"]] == []
    assert cases["a/torn"][0].get("message") == "a/torn/study.toml: x"
    assert cases["a/torn"][0].text.endswith("study.toml: \\x1b[1m")
    assert cases["a/holed"][0].text == "run.json: not JSON"
    assert (cases["b/bad"][0].tag, cases["b/bad"][0].text) == (
        "failure", "veto\nrouter: loss",
    )  # fmt: skip


def test_fail_on_worse_is_an_exit_status_and_junit_a_file(
    made, order, tmp_path, capsys
):
    made(patched=50.0)
    target = tmp_path / "junit.xml"
    words = ["report", str(tmp_path / "data"), "-o", str(order.out), "--quiet"]
    words += ["--notebook", str(order.notebook), "--formats", "text"]
    assert main([*words, "--fail-on", "veto,worse", "--junit", str(target)]) == 1
    assert main(words) == 0
    assert ET.parse(target).getroot().get("tests") == "1"
    assert main([*words, "--junit", str(tmp_path / "no" / "x.xml")]) == 2
    assert "x.xml: cannot be written (" in capsys.readouterr().err


def test_jobs_follow_cores_and_memory(monkeypatch):
    monkeypatch.setattr(capacity, "cores", lambda: 8)
    for free, jobs in ((None, 8), (100 << 30, 8), (3 << 30, 3), (1, 1)):
        monkeypatch.setattr(capacity, "free_byte", lambda free=free: free)
        assert capacity.jobs() == jobs
    monkeypatch.setattr(capacity, "free_byte", lambda: 8 << 30)
    assert capacity.share_byte(2) == 4 << 30
    assert capacity.share_byte(16) == 1 << 30


def test_the_limit_of_a_container_counts(tmp_path, monkeypatch):
    (tmp_path / "max").write_text(f"{1 << 20}\n")
    (tmp_path / "now").write_text("1000\n")
    paths = (str(tmp_path / "max"), str(tmp_path / "now"))
    monkeypatch.setattr(capacity, "_CGROUPS", (paths,))
    assert capacity.free_byte() == (1 << 20) - 1000
    (tmp_path / "max").write_text("max\n")
    assert capacity.free_byte() != (1 << 20) - 1000
    assert os.cpu_count() >= capacity.cores() >= 1
