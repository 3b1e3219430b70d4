"""The page of all studies: what it reads, lists, draws and links to."""

import json
import os
from dataclasses import replace

import pytest

from patchstudy.errors import StudyError
from patchstudy.findings import assess
from patchstudy.report import summary
from patchstudy.report.results import results, written
from patchstudy.report.table import Note, Vector
from patchstudy.study import open_study


@pytest.fixture
def reports(tmp_path, made):
    """Return a folder with the result of one study and the failure of another."""
    folder = tmp_path / "reports"
    (folder / "driver" / "patch").mkdir(parents=True)
    content = written(assess(open_study(made())))
    (folder / "driver" / "patch" / "report.json").write_bytes(content)
    (folder / "driver" / "patch" / "report.html").write_text("")
    listed = [
        {"study": "driver/patch", "report": True, "error": ""},
        {"study": "driver/torn", "report": False, "error": "study.toml: not TOML"},
    ]
    (folder / "index.json").write_text(json.dumps({"studies": listed}))
    return folder


def test_every_study_has_a_row_with_its_decision(reports):
    table = summary.overview(summary.summary(reports))
    (row,) = table.rows
    cells = dict(zip([one.name for one in table.columns], row, strict=True))
    assert cells["Study"].links == (("driver/patch", "driver/patch/report.html"),)
    assert cells["Files"].links == (("json", "driver/patch/report.json"),)
    assert cells["Driver"] == "driver"
    assert cells["Devices"] == "router"
    assert cells["Decision"] == "accept"
    assert cells["Guards"] == "none"
    assert cells["Primary metrics"].startswith("throughput on tcp: better by +10")


def test_rows_can_be_chosen_by_driver_device_decision_and_state(reports):
    table = summary.overview(summary.summary(reports))
    chosen = [one.name for one in table.columns if one.choice]
    assert chosen == ["Driver", "Devices", "Decision", "Inputs"]


def test_a_failure_is_told_with_its_reason(reports):
    (note,) = summary.failures(summary.summary(reports))
    assert note.text == "driver/torn: no new report: study.toml: not TOML"


def test_an_accepted_null_says_so_in_the_list(tmp_path, assessed):
    content = results(assessed("qmi_wwan/same-module"))
    row = summary._said(content)
    assert row == "no change claimed, none found"


def test_a_report_whose_inputs_changed_says_so(reports):
    listed = json.loads((reports / "index.json").read_text())
    listed["studies"][0]["stale"] = "measurements.csv changed"
    (reports / "index.json").write_text(json.dumps(listed))
    found = summary.summary(reports)
    assert "stale" in summary.overview(found).rows[0]
    note = summary.failures(found)[1]
    assert note.text == "driver/patch: old report: measurements.csv changed"


def test_devices_that_agree_stand_in_a_table(tmp_path, assessed):
    content = results(assessed("qmi_wwan/qmap-headroom"))
    found = summary.Summary(
        folder=tmp_path, reports={"a/b": content}, errors={}, stale={"a/b": ""}
    )
    (table,) = summary.devices(found)
    rows = {row[1]: row for row in table.rows}
    assert rows["throughput, tcp-egress80"][2:4] == ("2 on 1 machine", "same sign")
    assert rows["retransmits, tcp-egress80"][2:4] == ("2 on 1 machine", "-")


def test_published_devices_are_named_where_nothing_was_measured(tmp_path, assessed):
    names = ("qmi_wwan/qmap-headroom", "bgmac/prefetch")
    reports = {name: results(assessed(name)) for name in names}
    table = summary.overview(
        summary.Summary(folder=tmp_path, reports=reports, errors={})
    )
    assert [row[2] for row in table.rows] == [
        "qemu-tcg-icount-125mips, qemu-tcg-icount-250mips", "bcm4708 (published)",
    ]  # fmt: skip


def test_every_primary_change_is_drawn(reports):
    drawn = summary.forest(summary.summary(reports))
    assert isinstance(drawn, Vector)
    assert drawn.alt.startswith("Supported on router: throughput on tcp")


def test_of_very_many_changes_the_largest_are_drawn(reports, monkeypatch):
    found = summary.summary(reports)
    (report,) = found.reports.values()
    (one,) = report["comparisons"]
    small = {**one, "change": {**one["change"], "value": 0.001}}
    other = {**report, "comparisons": [small], "sentence": "Hardly any change."}
    two = replace(found, reports={"driver/other": other, **found.reports})
    assert summary.forest(two).alt == f"Hardly any change. {report['sentence']}"
    monkeypatch.setattr(summary, "MANY", 1)
    drawn = summary.forest(two)
    assert drawn.caption == (
        "Primary metrics with their interval and margin: of 2 the 1 that changed most "
        "against their margins. The table has all."
    )
    assert drawn.alt == report["sentence"]


def test_nothing_to_draw_is_said(tmp_path):
    found = summary.Summary(folder=tmp_path, reports={}, errors={}, stale={})
    assert summary.forest(found) == Note("caveat", "Nothing could be compared.")
    assert summary.overview(found).rows == ()
    (note,) = summary.failures(found)
    assert note.text == "Every report fits its inputs."


@pytest.mark.parametrize(
    ("unit", "high", "scale", "axis"),
    [
        ("1", 0.5, "difference", (0.01, "pp")),
        ("1", 30.0, "difference", (1.0, "count")),
        ("s", 0.002, "difference", (1e-3, "ms")),
        ("s", 0.002, "ratio", (0.01, "%")),
    ],
)
def test_a_change_is_drawn_in_its_unit(unit, high, scale, axis):
    values = {"high": high}
    one = {"unit": unit, "change": {"scale": scale}}
    assert summary._axis({**one, "baseline": values, "patched": values}) == axis


def test_a_folder_without_reports_says_what_to_do(tmp_path):
    with pytest.raises(StudyError, match=r"index.json: no such file; run patchstudy"):
        summary.summary(tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "report.json: not JSON ("),
        ("[" * 10**5, "report.json: not JSON ("),
        ("[]", "report.json: not a report of schema 1"),
        ('{"schema": 1, "comparisons": 5}', "report.json: not a report of schema 1"),
        (None, "report.json: cannot be read (no plain file)"),
    ],
)
def test_a_damaged_result_is_named_and_hides_no_other(reports, content, words):
    strange = reports / "other" / "patch"
    strange.mkdir(parents=True)
    if content is None:
        os.mkfifo(strange / "report.json")
    else:
        (strange / "report.json").write_text(content)
    listed = json.loads((reports / "index.json").read_text())["studies"]
    listed.append({"study": "other/patch", "report": True, "error": ""})
    (reports / "index.json").write_text(json.dumps({"studies": listed}))
    found = summary.summary(reports)
    assert list(found.reports) == ["driver/patch"]
    assert words in found.errors["other/patch"]
