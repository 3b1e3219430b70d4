"""Reports of many studies: one failure stops no other, files are whole or untouched."""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from patchstudy.cli import main
from patchstudy.errors import StudyError
from patchstudy.report import batch, fresh

IPERF3 = Path(__file__).parent / "golden/loaders/iperf3/v312-tcp-fwd.json"
ALL = ["report.html", "report.ipynb", "report.json", "report.pdf", "report.txt"]


@pytest.fixture
def notebook(tmp_path):
    """Return a function that writes a notebook that runs one line."""

    def write(line="print(study)"):
        cell = new_code_cell("study = ''", metadata={"tags": ["parameters"]})
        path = tmp_path / "own.ipynb"
        nbformat.write(new_notebook(cells=[cell, new_code_cell(line)]), path)
        return path

    return write


@pytest.fixture
def order(tmp_path, notebook):
    """Return an order of reports by a small notebook, with the text only."""
    out = tmp_path / "reports"
    return batch.Order(out=out, formats=("text",), notebook=notebook(), jobs=2)


def report(folders, order):
    told = []
    outcomes = batch.report_all(folders, order, tell=told.append)
    assert sorted(told, key=lambda one: one.study) == list(outcomes)
    return outcomes


def files(folder):
    """Return the content of every file below a folder, by its path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def broken_raw(folder):
    """Put a raw file into a study that was cut in the middle."""
    path = folder / "router/baseline/boot-01/run-01/tcp.iperf3.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(IPERF3.read_bytes()[:2000])
    return path


def test_one_failure_stops_no_other(made, order, tmp_path, capsys):
    made("a/whole")
    made("a/torn", design="question = 1")
    raw = broken_raw(made("b/holed"))
    words = ["report", str(tmp_path / "data"), "-o", str(order.out), "--quiet"]
    words += ["--notebook", str(order.notebook), "--formats", "text"]
    assert main(words) == 2
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert captured.out.startswith("2 of 3 studies reported: ")
    assert f"patchstudy: {raw}: not JSON" in lines[-1]
    assert all("a/torn/study.toml: " in line for line in lines[:-1])
    assert len(lines) == 4  # three mistakes of study.toml, one line each
    expected = {"report.ipynb", "report.json", "report.txt", ".made.json"}
    index = {"index.html", "index.ipynb", "index.json", ".made.json"}
    made_files = {f"{name}/{x}" for name in ("a/whole", "b/holed") for x in expected}
    assert files(order.out).keys() == made_files | index
    listed = json.loads((order.out / "index.json").read_text())["studies"]
    assert [(one["study"], one["report"]) for one in listed] == [
        ("a/torn", False), ("a/whole", True), ("b/holed", True),
    ]  # fmt: skip
    page = (order.out / "index.html").read_text()
    assert "a/torn: no new report: " in page
    assert 'href="b/holed/report.txt"' in page


def test_the_index_keeps_what_was_reported_earlier(made, order):
    batch.index(report([made("a/old"), made("a/gone")], order), order)
    shutil.rmtree(order.out / "a/gone")
    batch.index(report([made("a/new")], order), order)
    listed = json.loads((order.out / "index.json").read_text())["studies"]
    assert [one["study"] for one in listed] == ["a/new", "a/old"]


def test_the_list_says_which_reports_are_not_right_any_more(made, order):
    folders = [made("a/moved"), made("a/old"), made("a/torn")]
    batch.index(report(folders, order), order)
    shutil.rmtree(folders[0])
    (folders[1] / "measurements.csv").write_text("other")
    (folders[2] / "study.toml").write_text("question = 1")
    batch.index(report([made("a/new"), folders[2]], order), order)
    listed = json.loads((order.out / "index.json").read_text())["studies"]
    assert {one["study"]: one["stale"] for one in listed} == {
        "a/moved": "its study is not there any more",
        "a/new": "",
        "a/old": "measurements.csv changed",
        "a/torn": "",
    }
    page = (order.out / "index.html").read_text()
    assert "a/old: old report: measurements.csv changed" in page
    assert "a/torn: no new report: " in page


def test_only_the_study_that_changed_is_made_again(made, order):
    folders = [made("a/x"), made("a/y")]
    batch.index(report(folders, order), order)
    before = {name: (order.out / name).stat() for name in files(order.out)}
    table = folders[1] / "measurements.csv"
    table.write_text(table.read_text().replace("Mbit/s", "Gbit/s"))
    outcomes = report(folders, order)
    batch.index(outcomes, order)
    assert [one.made for one in outcomes] == [False, True]
    assert [one.decision for one in outcomes] == ["accept", "accept"]
    after = {name: (order.out / name).stat() for name in files(order.out)}
    changed = {name for name in before if before[name].st_ino != after[name].st_ino}
    kept = {"a/x/report.ipynb", "a/x/report.json", "a/x/report.txt"}
    assert kept.isdisjoint(changed)
    assert {"a/y/report.json", "index.html"} <= changed


def test_nothing_is_made_where_nothing_changed(made, order):
    folders = [made("a/x"), made("a/y")]
    batch.index(report(folders, order), order)
    before = files(order.out)
    times = {name: (order.out / name).stat().st_mtime_ns for name in before}
    outcomes = report(folders, order)
    batch.index(outcomes, order)
    assert [one.made for one in outcomes] == [False, False]
    named = {name: times[name] for name in times if not name.endswith(".made.json")}
    assert named == {name: (order.out / name).stat().st_mtime_ns for name in named}
    assert [one.made for one in report(folders, replace(order, force=True))] == [
        True, True,
    ]  # fmt: skip


def test_files_that_were_not_asked_for_do_not_stay_from_an_earlier_run(made, order):
    folder = made()
    report([folder], order)
    assert (order.out / "driver/patch/report.txt").is_file()
    report([folder], replace(order, formats=()))
    assert not (order.out / "driver/patch/report.txt").exists()


def test_a_raw_file_that_could_not_be_read_is_told_again(made, order):
    folder = made()
    raw = broken_raw(folder)
    first, second = (report([folder], order)[0] for _ in range(2))
    assert (first.made, second.made) == (True, False)
    assert first.unread == second.unread
    assert str(raw) in first.unread[0]


def test_explain_says_why_and_makes_nothing(made, order, tmp_path, capsys):
    folders = [made("a/x"), made("a/y"), made("a/z")]
    report(folders[:2], order)
    (folders[1] / "measurements.csv").write_text("other")
    before = files(order.out)
    words = ["report", str(tmp_path / "data"), "-o", str(order.out), "--explain"]
    words += ["--notebook", str(order.notebook), "--formats", "text"]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines() == [
        "a/x: up to date",
        "a/y: measurements.csv changed",
        "a/z: no report was made yet",
    ]
    without = {name: x for name, x in before.items() if not name.endswith("made.json")}
    assert without.items() <= files(order.out).items()
    assert main([*words, "--force", "--study", "a/x"]) == 0
    assert capsys.readouterr().out == "a/x: --force was given\n"


@pytest.mark.parametrize("content", ["", "[]", '{"studies": [1]}', "\udcff"])
def test_an_index_that_is_none_is_made_anew(content, tmp_path):
    path = tmp_path / "index.json"
    path.write_text(content, encoding="utf-8", errors="surrogateescape")
    assert batch._listed_before(tmp_path) == {}


def test_the_index_is_written_where_every_study_failed(made, order):
    outcomes = report([made(design="")], order)
    assert [one.ok for one in outcomes] == [False]
    batch.index(outcomes, order)
    assert "no new report" in (order.out / "index.html").read_text()


def test_a_notebook_that_fails_leaves_the_old_report(made, order, notebook):
    folder = made()
    assert report([folder], order)[0].ok
    before = files(order.out)
    notebook("raise ValueError('no')")
    (outcome,) = report([folder], replace(order, force=True))
    problem = "cell \"raise ValueError('no')\": ValueError: no"
    assert outcome.error == f"own.ipynb: {problem}"
    assert files(order.out) == before


def test_a_folder_that_cannot_be_written_is_named(made, order):
    order.out.parent.joinpath("reports").write_text("a file")
    outcomes = report([made()], order)
    assert "reports" in outcomes[0].error
    assert "cannot be read or written (" in outcomes[0].error
    with pytest.raises(StudyError, match=r"reports: cannot be read or written \("):
        batch.index(outcomes, order)
    assert order.out.read_text() == "a file"


def test_a_mistake_of_the_program_costs_one_study(made, order, monkeypatch, capsys):
    inputs = fresh.inputs

    def broken(path, before):
        if path.name == "b":
            raise AttributeError("no such thing")
        return inputs(path, before)

    monkeypatch.setattr(fresh, "inputs", broken)
    outcomes = report([made("a/a"), made("a/b")], order)
    assert [one.error == "" for one in outcomes] == [True, False]
    assert (
        "a mistake of patchstudy, please report it: AttributeError" in outcomes[1].error
    )
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("depth", [1, 2])
def test_a_link_that_leads_out_of_the_output_folder_is_not_followed(
    depth, made, order, tmp_path
):
    (tmp_path / "home" / "patch").mkdir(parents=True)
    folder = made()
    link = order.out.joinpath(*batch.study_name(folder).split("/")[:depth])
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / "home")
    for _ in range(2):
        (outcome,) = report([folder], order)
        assert "a link leads out of" in outcome.error
    batch.index([outcome], order)
    assert files(tmp_path / "home") == {}


def test_an_output_folder_that_is_a_link_is_followed(made, order, tmp_path):
    (tmp_path / "disk").mkdir()
    order.out.symlink_to(tmp_path / "disk")
    (outcome,) = report([made()], order)
    assert outcome.error == ""
    assert list((tmp_path / "disk").glob("*/*/report.json"))
    assert order.out.is_symlink()


def test_a_notebook_that_shows_other_results_is_refused(made, order, notebook):
    notebook("print('Results (report.json): sha256 ' + '0' * 64)")
    (outcome,) = report([made()], order)
    assert "the notebook found other results than report.json" in outcome.error
    assert files(order.out) == {}


def test_two_runs_of_the_shipped_notebook_give_the_same_bytes(made, tmp_path):
    folder = made()
    several = []
    for number in range(2):
        order = batch.Order(
            out=tmp_path / f"reports-{number}",
            formats=batch.FORMATS,
            notebook=batch.shipped("patch.ipynb"),
            jobs=1,
        )
        (outcome,) = report([folder], order)
        assert (outcome.decision, outcome.ok) == ("accept", True)
        several.append(files(order.out / "driver/patch"))
    assert sorted(several[0]) == [".made.json", *ALL]
    assert [name for name in ALL if several[0][name] != several[1][name]] == []


def test_a_folder_whose_name_is_not_utf_8_is_reported(made, order):
    outcomes = report([made("driver/p\udcff")], order)
    assert outcomes[0].ok
    batch.index(outcomes, order)
    assert 'href="driver/p%FF/report.txt"' in (order.out / "index.html").read_text()


def test_studies_of_one_name_are_refused(made, tmp_path):
    made("here/driver/patch")
    made("there/driver/patch")
    with pytest.raises(StudyError, match=r"there.*here/driver/patch has the same name"):
        batch.find(tmp_path / "data", ())


def test_wanted_studies_are_found_once_each(made, tmp_path):
    folders = [made(name) for name in ("a/x", "a/y")]
    data = tmp_path / "data"
    assert batch.find(data, ()) == tuple(folders)
    assert batch.find(data, ["a/y", "a/y"]) == (folders[1],)
    assert batch.find(folders[0], ()) == (folders[0],)


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["a/z"], r"data: no study 'a/z'; there is a/x"),
        (["x"], r"data: no study 'x'; there is a/x"),
    ],
)
def test_a_study_that_is_not_there_is_named_with_those_that_are(
    names, problem, made, tmp_path
):
    made("a/x")
    with pytest.raises(StudyError, match=problem):
        batch.find(tmp_path / "data", names)


def test_a_folder_without_studies_is_named(tmp_path):
    with pytest.raises(StudyError, match=r"no study; there is no folder with a study"):
        batch.find(tmp_path, ())
    with pytest.raises(StudyError, match=r"nowhere: no such folder; give the folder"):
        batch.find(tmp_path / "nowhere", ())


def test_a_notebook_that_is_not_shipped_is_named():
    with pytest.raises(StudyError, match=r"x.ipynb: this installation has no such"):
        batch.shipped("x.ipynb")


def test_a_batch_imports_nothing_that_only_its_kernels_need():
    program = (
        "import sys; from patchstudy.report import batch\n"
        "with batch.without_grammar(): from patchstudy.report import executors\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.split()
    assert {"nbformat", "jsonschema", "papermill", "typst"}.issubset(told)
    unwanted = {"pandas", "scipy", "seaborn", "IPython", "rfc3987_syntax"}
    assert unwanted.isdisjoint(told)


def test_what_was_kept_from_one_import_can_be_imported_afterwards(monkeypatch):
    monkeypatch.delitem(sys.modules, "rfc3987_syntax", raising=False)
    with batch.without_grammar(), pytest.raises(ImportError):
        importlib.import_module("rfc3987_syntax")
    assert "rfc3987_syntax" not in sys.modules
    other = ModuleType("rfc3987_syntax")
    monkeypatch.setitem(sys.modules, "rfc3987_syntax", other)
    with batch.without_grammar():
        assert importlib.import_module("rfc3987_syntax") is other
    assert sys.modules["rfc3987_syntax"] is other


@pytest.fixture
def hears_ctrl_c():
    """Undo, for what is started, what a shell does to commands in its background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_stopped_batch_begins_no_other_study(
    hears_ctrl_c, made, order, notebook, tmp_path
):
    for number in range(4):
        made(f"a/{number}")
    notebook("import time; time.sleep(0.5)")
    words = ["report", str(tmp_path / "data"), "-o", str(order.out), "--jobs", "1"]
    words += ["--notebook", str(order.notebook), "--formats", ""]
    command = [sys.executable, "-m", "patchstudy", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        first = running.stderr.readline()
        running.send_signal(signal.SIGINT)
        rest = running.stderr.read()
    assert first == "a/0: accept\n"
    assert running.returncode == 130
    assert rest == "patchstudy: stopped; finished reports are whole\n"
    done = [path for path in files(order.out) if path.endswith("report.json")]
    assert "a/0/report.json" in done
    assert "a/3/report.json" not in done


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_notebook_that_is_no_file_is_one_line(made, tmp_path, kind, capsys):
    path = tmp_path / "own.ipynb"
    make = {
        "pipe": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to("/dev/zero"),
        "folder": path.mkdir,
    }
    make[kind]()
    out = str(tmp_path / "reports")
    assert main(["report", str(made()), "-o", out, "--notebook", str(path)]) == 2
    assert "own.ipynb: no plain file; give a notebook" in capsys.readouterr().err
