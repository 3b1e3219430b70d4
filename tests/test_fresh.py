"""A report is made again where something changed, and only there."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from patchstudy.report import batch, fresh
from patchstudy.study import open_study
from patchstudy.tree import RECORD

SETTINGS = {"notebook": "1", "package": "2", "pandas": "2.3"}
OLD_NS = 10_000_000_000


@pytest.fixture
def study(made):
    """Return a study whose files were written long ago."""
    folder = made()
    for path in folder.iterdir():
        os.utime(path, ns=(OLD_NS, OLD_NS))
    return folder


@pytest.fixture
def place(tmp_path, study):
    """Return the folder of a report of the study, with its record."""
    folder = tmp_path / "reports" / "driver" / "patch"
    folder.mkdir(parents=True)
    note(folder, study)
    return folder


def note(place, study):
    fresh.claim(place)
    made = {"report.html": b"page", "report.json": b"{}"}
    for name, data in made.items():
        (place / name).write_bytes(data)
    noted_ns, inputs = fresh.inputs(study, None)
    record = fresh.Record(
        noted_ns=noted_ns,
        settings=SETTINGS,
        inputs=inputs,
        outputs=fresh.signed(made),
        result={"decision": "accept"},
    )
    fresh.write(place, record)


def reasons(place, study, settings=SETTINGS):
    return list(fresh.look(place, study, settings).reasons)


def table(study):
    return study / "measurements.csv"


def test_nothing_changed(place, study):
    assert reasons(place, study) == []
    assert fresh.read(place).result == {"decision": "accept"}


def test_a_study_without_a_report_is_new(place, study):
    (place / RECORD).unlink()
    assert reasons(place, study) == ["no report was made yet"]


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", '{"schema": 0}', '{"schema": 1, "noted_ns": "x"}', "\udcff",
        "[" * 10**5, '{"schema": 1, "outputs": {}, "noted_ns": 1e999}',
    ],
)  # fmt: skip
def test_a_record_that_is_none_is_no_report(content, place, study):
    (place / RECORD).write_text(content, errors="surrogateescape")
    assert reasons(place, study) == ["no report was made yet"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("outputs", {"../../../etc/passwd": [1, 1, 1, 1, "x"]}),
        ("outputs", {"a\0": [1, 1, 1, 1, "x"]}),
        ("outputs", {"/dev/zero": [0, 1, 1, 1, "x"]}),
        ("settings", [1]),
        ("result", {"decision": "veto", "unread": 5, "worse": []}),
        ("result", {"decision": "veto", "unread": [["one"]], "worse": []}),
    ],
)
def test_a_record_that_somebody_made_up_is_none(key, value, place, study):
    told = json.loads((place / RECORD).read_text())
    (place / RECORD).write_text(json.dumps({**told, key: value}))
    assert reasons(place, study) == ["no report was made yet"]


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_pipes_and_devices_in_place_of_a_record_or_page_are_not_read(
    kind, place, study
):
    def put(path):
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("/dev/zero")

    put(place / "report.html")
    assert reasons(place, study) == ["report.html is missing"]
    put(place / RECORD)
    assert reasons(place, study) == ["no report was made yet"]


def test_a_mark_of_a_folder_is_not_written_through_a_link(tmp_path):
    (tmp_path / RECORD).symlink_to(tmp_path / "elsewhere")
    fresh.claim(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_changed_added_or_removed_file_is_named(place, study):
    table(study).write_text("other")
    (study / "router").mkdir()
    (study / "router" / "new.json").write_text("{}")
    (study / "study.toml").rename(study / "other.toml")
    assert reasons(place, study) == [
        "measurements.csv changed", "other.toml is new", "router/new.json is new",
        "study.toml is gone",
    ]  # fmt: skip


def test_a_change_that_keeps_size_and_time_is_found(place, study):
    text = table(study).read_text()
    table(study).write_text(text.replace("Mbit/s", "Gbit/s"))
    os.utime(table(study), ns=(OLD_NS, OLD_NS))
    assert reasons(place, study) == ["measurements.csv changed"]


def test_a_change_just_after_the_record_is_found_whatever_the_times_say(place, study):
    # A clock that ticks too slowly gives both contents the same times.
    record = fresh.read(place)
    text = table(study).read_text()
    table(study).write_text(text.replace("Mbit/s", "Gbit/s"))
    size, mtime, ctime, inode = fresh._times(table(study).stat())
    digest = record.inputs["measurements.csv"][-1]
    signed = {**record.inputs, "measurements.csv": (size, mtime, ctime, inode, digest)}
    fresh.write(place, replace(record, inputs=signed, noted_ns=max(mtime, ctime)))
    assert reasons(place, study) == ["measurements.csv changed"]


@pytest.mark.parametrize("days", [-400, -1, 1, 400])
def test_a_clock_that_jumped_while_a_report_was_made_hides_no_change(
    tmp_path, study, monkeypatch, days
):
    place = tmp_path / "reports" / "driver" / "patch"
    place.mkdir(parents=True)
    true_ns = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: true_ns() + days * 86_400 * 10**9)
    note(place, study)
    monkeypatch.undo()
    assert reasons(place, study) == []
    told = table(study).read_text()
    times = table(study).stat()
    table(study).write_text(told.replace("100.0", "100.1"))
    os.utime(table(study), ns=(times.st_atime_ns, times.st_mtime_ns))
    assert reasons(place, study) == ["measurements.csv changed"]


def test_a_file_of_tomorrow_is_hashed_every_time(place, study):
    tomorrow = time.time_ns() + 86_400 * 10**9
    os.utime(table(study), ns=(tomorrow, tomorrow))
    assert reasons(place, study) == []
    told = table(study).read_text()
    table(study).write_text(told.replace("100.0", "100.1"))
    os.utime(table(study), ns=(tomorrow, tomorrow))
    assert reasons(place, study) == ["measurements.csv changed"]


def test_files_that_were_only_touched_or_copied_change_nothing(place, study):
    data = table(study).read_bytes()
    table(study).unlink()
    table(study).write_bytes(data)
    (study / "study.toml").touch()
    assert reasons(place, study) == []


def test_a_digest_is_taken_over_only_where_the_times_prove_it(place, study, mocked):
    record = fresh.read(place)
    later = replace(record, noted_ns=record.noted_ns + 10**10)
    assert fresh.inputs(study, later)[1] == record.inputs
    assert mocked == []
    fresh.inputs(study, replace(record, noted_ns=OLD_NS))
    assert sorted(mocked) == ["measurements.csv", "study.toml"]


@pytest.fixture
def mocked(monkeypatch):
    """Return the names of the files that are hashed."""
    hashed = []
    digest = fresh._digest

    def told(path):
        hashed.append(path.name)
        return digest(path)

    monkeypatch.setattr(fresh, "_digest", told)
    return hashed


def test_once_looked_at_the_times_of_outputs_will_do(place, study, monkeypatch):
    now = fresh.time.time_ns() + 10**10
    monkeypatch.setattr(fresh.time, "time_ns", lambda: now)
    assert reasons(place, study) == []
    hashed = []
    monkeypatch.setattr(fresh, "_digest", hashed.append)
    assert reasons(place, study) == []
    assert hashed == []


def test_an_output_that_was_edited_or_lost_is_named(place, study):
    (place / "report.html").write_bytes(b"PAGE")
    (place / "report.json").unlink()
    assert reasons(place, study) == [
        "report.html was changed by another program", "report.json is missing",
    ]  # fmt: skip


def test_other_settings_are_named(place, study):
    now = {"notebook": "9", "package": "9", "pandas": "3.0", "Python": "3.12"}
    assert reasons(place, study, now) == [
        "Python: 3.12 instead of none", "the notebook changed",
        "patchstudy itself changed", "pandas: 3.0 instead of 2.3",
    ]  # fmt: skip


def test_hidden_files_and_the_readme_are_not_read_so_do_not_matter(place, study):
    (study / "README.md").write_text("about")
    (study / ".study.toml.swp").write_text("an editor's")
    assert reasons(place, study) == []


def test_reports_inside_the_study_are_no_raw_files(study):
    before = open_study(study)
    inside = study / "reports" / "driver" / "patch"
    note(inside, study)
    assert open_study(study).leftovers == before.leftovers
    assert reasons(inside, study) == []


def test_links_to_nothing_and_pipes_are_told_not_read(place, study):
    (study / "gone").symlink_to("nowhere")
    os.mkfifo(study / "pipe")
    assert reasons(place, study) == ["gone is new", "pipe is new"]


def test_every_file_of_the_package_decides_about_a_report(tmp_path, monkeypatch):
    package = tmp_path / "patchstudy"
    (package / "report" / "template").mkdir(parents=True)
    style = package / "report" / "template" / "report.css"
    style.write_text("a")
    monkeypatch.setattr(fresh, "_PACKAGE", package)
    before = fresh._package()
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "x.pyc").write_bytes(b"")
    assert fresh._package() == before
    style.write_text("b")
    assert fresh._package() != before


def test_that_nothing_changed_is_found_without_importing_anything_slow(made, tmp_path):
    made()
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from patchstudy.report import batch\n"
        "order = batch.Order(out=Path('reports'), formats=(), jobs=1,\n"
        "    notebook=batch.shipped('patch.ipynb'))\n"
        "print([batch.reasons(x) for x in batch.tasks(batch.find(Path('data'), ()),\n"
        "    order)])\n"
        "print({'numpy', 'pandas', 'papermill', 'nbformat', 'patchstudy.loaders'}\n"
        "    & sys.modules.keys() or 'nothing')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "[('no report was made yet',)]", "nothing",
    ]  # fmt: skip


def test_reasons_are_told_in_one_line():
    told = [f"{number}.json changed" for number in range(5)]
    shown = "0.json changed; 1.json changed; 2.json changed and 2 more"
    assert batch.in_words(told) == shown
    assert batch.in_words([]) == ""
    assert json.dumps(batch.in_words(["a\nb is new"])) == r'"a\\nb is new"'
