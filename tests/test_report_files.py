"""Files that are there whole or not at all."""

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from patchstudy.report.files import write, write_all


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_and_nothing_is_left_beside_it(tmp_path):
    write(tmp_path / "report.html", b"old")
    write(tmp_path / "report.html", b"new")
    assert (tmp_path / "report.html").read_bytes() == b"new"
    assert names(tmp_path) == ["report.html"]


def test_all_files_are_written(tmp_path):
    write_all(tmp_path, {"a": b"1", "b": b"2"})
    assert [(tmp_path / name).read_bytes() for name in names(tmp_path)] == [b"1", b"2"]


def test_a_failure_leaves_the_old_files_and_nothing_else(tmp_path):
    write(tmp_path / "a", b"old")
    with pytest.raises(TypeError):
        write_all(tmp_path, {"a": b"new", "b": "not bytes"})  # type: ignore[dict-item]
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_name_that_is_taken_by_a_folder_leaves_nothing_beside_it(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="a"):
        write(tmp_path / "a", b"new")
    assert names(tmp_path) == ["a"]


def test_others_may_read_what_they_may_read_of_any_new_file(tmp_path):
    (tmp_path / "usual").touch()
    write(tmp_path / "report.html", b"")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_what_a_killed_program_left_goes_with_the_next_writing(tmp_path):
    for name, age_s in ((".a.1.tmp", 3600), (".a.2.tmp", 0)):
        (tmp_path / name).write_bytes(b"half")
        os.utime(tmp_path / name, (time.time() - age_s,) * 2)
    write(tmp_path / "a", b"new")
    assert names(tmp_path) == [".a.2.tmp", "a"]


@pytest.mark.parametrize("name", ["../a", "a/b", "", ".", ".."])
def test_only_plain_names_are_written(tmp_path, name):
    with pytest.raises(ValueError, match="is not a plain file name"):
        write_all(tmp_path, {name: b""})
    assert names(tmp_path) == []


def test_a_full_disk_and_a_writer_that_is_killed_leave_whole_files():
    script = Path(__file__).parents[1] / "benchmarks" / "faults.py"
    done = subprocess.run(
        [sys.executable, script, "--kills", "3"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "quota: File too large; the old files are whole" in done.stdout
    assert "3 kills, seed 1: every file whole" in done.stdout
