"""A report is borne out by its raw files, or the first number that is not is named."""

import json
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
