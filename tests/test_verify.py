"""A report is borne out by its raw files, or the first number that is not is named."""

import json
import os
import shutil

import pytest

from patchstudy.cli import main
from patchstudy.findings import assess
from patchstudy.report import results
from patchstudy.report.text import text
from patchstudy.study import open_study


@pytest.fixture
def report(data, tmp_path):
    """Return a report of a copied study, without a notebook, and the study."""
    study = tmp_path / "data/qmi_wwan/rx-prefetch"
    shutil.copytree(data / "qmi_wwan/rx-prefetch", study)
    assessment = assess(open_study(study))
    folder = tmp_path / "reports/qmi_wwan/rx-prefetch"
    folder.mkdir(parents=True)
    content = results.written(assessment)
    (folder / "report.json").write_bytes(content)
    (folder / "report.txt").write_text(text(assessment))
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "papermill": {"parameters": {"study": "../../../data/qmi_wwan/rx-prefetch"}}
        },
        "cells": [],
    }
    (folder / "report.ipynb").write_text(json.dumps(notebook))
    return folder, study


def verify(capsys, *arguments):
    status = main(["verify", *map(str, arguments)])
    return status, capsys.readouterr()


def test_a_report_of_these_raw_files_is_borne_out(report, capsys):
    status, told = verify(capsys, report[0])
    assert status == 0
    assert "numbers derived again, and the same" in told.out


def test_the_first_number_that_differs_is_named(report, capsys):
    folder, _ = report
    path = folder / "report.json"
    content = json.loads(path.read_text())
    told = content["comparisons"][0]["change"]
    told["value"] += 0.01
    path.write_text(json.dumps(content))
    status, shown = verify(capsys, folder, "--json")
    assert status == 1
    (found,) = json.loads(shown.out)
    (line,) = found["differences"]
    assert line.startswith("report.json: comparisons[0].change.value: ")
    assert repr(told["value"]) in line
    assert line.endswith("derived")


def test_a_changed_raw_file_is_named_first(report, capsys):
    folder, study = report
    path = min(study.rglob("*.iperf3.json"))
    told = json.loads(path.read_text())
    told["end"]["sum_received"]["bytes"] += 12_345_678
    path.write_text(json.dumps(told))
    status, shown = verify(capsys, folder)
    first = shown.out.splitlines()[0]
    name = path.relative_to(study).as_posix()
    assert status == 1
    assert f"{name}: changed since the report: sha256 " in first


def test_a_missing_and_a_new_raw_file_are_named(report, capsys):
    folder, study = report
    path = min(study.rglob("*.iperf3.json"))
    path.rename(path.with_name("tcp-egress80.new.iperf3.json"))
    status, shown = verify(capsys, folder)
    assert status == 1
    assert "used by the report, and not found or not used now" in shown.out
    assert "used now, and not by the report" in shown.out


def test_an_edited_text_is_found(report, capsys):
    folder, _ = report
    path = folder / "report.txt"
    path.write_text(path.read_text().replace("reject claim", "accept"))
    status, shown = verify(capsys, folder)
    assert status == 1
    assert "report.txt: line 1 is not what was derived" in shown.out


def test_a_page_made_from_other_results_is_found(report, capsys):
    folder, _ = report
    (folder / "report.html").write_text(f"(report.json): sha256 {'0' * 64}")
    status, shown = verify(capsys, folder)
    assert status == 1
    assert f"report.html: was made from other results: sha256 {'0' * 64}" in shown.out


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not the JSON of a report"),
        ("[" * 100_000, "not the JSON of a report"),
        ('{"schema": 99}', "not a report of schema 1"),
    ],
)
def test_what_is_no_report_is_refused(report, capsys, content, reason):
    folder, _ = report
    (folder / "report.json").write_text(content)
    status, shown = verify(capsys, folder)
    assert status == 2
    assert reason in shown.err


def test_a_folder_without_reports_is_refused(tmp_path, capsys):
    status, shown = verify(capsys, tmp_path)
    assert status == 2
    assert "no report.json" in shown.err


# ---- reports that a stranger sent ---------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"schema": [1]}, "not a report of schema", id="schema"),
        pytest.param({"provenance": []}, "from which files", id="no provenance"),
        pytest.param({"provenance": {}}, "from which files", id="no files"),
        pytest.param(
            {"provenance": {"files": {}, "hidden_names": "x"}},
            "from which files",
            id="hidden",
        ),
        pytest.param(
            {"provenance": {"files": {}, "versions": [1]}},
            "from which files",
            id="versions",
        ),
    ],
)
def test_a_report_of_another_shape_is_one_line(report, capsys, change, words):
    path = report[0] / "report.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    status, told = verify(capsys, report[0])
    assert (status, told.out) == (2, "")
    assert words in told.err
    assert told.err.count("\n") == 1


def test_a_value_of_any_depth_and_length_is_told_in_short(report, capsys):
    path = report[0] / "report.json"
    content = json.loads(path.read_text())
    content["decision"] = "\x1b[31m" + "x" * 10**6
    path.write_text(json.dumps(content))
    status, told = verify(capsys, report[0])
    assert status == 1
    assert len(told.out) < 1000
    assert "\x1b" not in told.out
    deep = json.dumps(content | {"decision": 0}).replace(
        '"decision": 0', f'"decision": {"[" * 900 + "]" * 900}'
    )
    path.write_text(deep)
    status, told = verify(capsys, report[0])
    assert (status, len(told.out) < 1000) == (1, True)


@pytest.mark.parametrize(
    "notebook",
    ["[]", '{"metadata": 5}', '{"metadata": {"papermill": [1]}}', "[" * 10**5],
)
def test_a_notebook_that_names_no_study_is_one_line(report, capsys, notebook):
    (report[0] / "report.ipynb").write_text(notebook)
    status, told = verify(capsys, report[0])
    assert status == 2
    assert "does not name its study; give it with --data" in told.err


@pytest.mark.parametrize("name", ["report.json", "report.ipynb", "report.txt"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(report, capsys, name):
    (report[0] / name).unlink()
    os.mkfifo(report[0] / name)
    status, told = verify(capsys, report[0])
    assert status == 2
    assert name in told.err


def test_a_link_in_place_of_new_files_is_followed_nowhere(report, capsys, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter").write_text("mine")
    (report[0] / ".switch").symlink_to(tmp_path / "home")
    status, told = verify(capsys, report[0])
    assert status == 2
    assert "was not left by patchstudy; remove it" in told.err
    assert (tmp_path / "home" / "letter").read_text() == "mine"
