"""Files that are there whole or not at all."""

import os
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from patchstudy.report import files
from patchstudy.report.files import settle, write, write_all


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
    (tmp_path / ".0a.new").mkdir()
    (tmp_path / ".0a.new" / "+a").write_bytes(b"half")
    write(tmp_path / "a", b"new")
    assert names(tmp_path) == ["a"]


def test_what_another_program_is_writing_stays(tmp_path):
    with files._beside(tmp_path) as new:
        (new / "+a").write_bytes(b"half")
        write(tmp_path / "a", b"new")
        assert names(tmp_path) == [new.name, "a"]
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize(("age_s", "left"), [(3600, ["a"]), (0, [".0a.new", "a"])])
def test_without_locks_only_what_is_old_is_removed(age_s, left, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "fcntl", None)
    (tmp_path / ".0a.new").mkdir()
    os.utime(tmp_path / ".0a.new", (time.time() - age_s,) * 2)
    write(tmp_path / "a", b"new")
    assert names(tmp_path) == left


def test_a_file_that_is_to_go_goes_with_the_set(tmp_path):
    write_all(tmp_path, {"a": b"1", "b": b"2"})
    write_all(tmp_path, {"a": b"3", "b": None, "c": None})
    assert (tmp_path / "a").read_bytes() == b"3"
    assert names(tmp_path) == ["a"]


def stopped_at(step, folder, new):
    """Write a set in a process that dies before a step; tell whether it died."""
    child = os.fork()
    if not child:
        left = step

        def count(event, _):
            nonlocal left
            if event == "open" or event.startswith(("os.", "shutil.")):
                left -= 1
                if left == 0:
                    os._exit(9)

        sys.addaudithook(count)
        write_all(folder, new)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def test_stopped_at_any_step_the_old_set_is_whole_or_the_new_one(tmp_path):
    old, new = {"a": b"1", "b": b"1", "c": b"1"}, {"a": b"2", "b": b"2", "d": b"2"}
    found, step, died = [], 0, True
    while died:
        step += 1
        place = tmp_path / str(step)
        place.mkdir()
        write_all(place, old)
        died = stopped_at(step, place, {**new, "c": None})
        settle(place)
        held = {x.name: x.read_bytes() for x in place.iterdir() if x.is_file()}
        found.append([old, new].index(held))
        write_all(place, {**old, "d": None})
        assert names(place) == ["a", "b", "c"]
    assert step > 20
    assert found == sorted(found)  # the old one up to a step, then the new one
    assert found.count(1) > 10


def test_a_set_is_on_the_disk_before_it_counts_and_in_place_before_it_is_done(
    tmp_path, monkeypatch
):
    told = []
    fsync, rename, rmdir = os.fsync, Path.rename, Path.rmdir

    def forced(handle):
        told.append(("forced", Path(f"/proc/self/fd/{handle}").readlink().name))
        fsync(handle)

    def renamed(one, other):
        told.append(("counts", ""))
        return rename(one, other)

    def removed(one):
        told.append(("done", ""))
        rmdir(one)

    monkeypatch.setattr(os, "fsync", forced)
    monkeypatch.setattr(Path, "rename", renamed)
    monkeypatch.setattr(Path, "rmdir", removed)
    write_all(tmp_path, {"a": b"1", "b": None})
    new = told[2][1]
    assert told == [
        ("forced", "+a"), ("forced", "-b"), ("forced", new), ("counts", ""),
        ("forced", tmp_path.name), ("forced", tmp_path.name), ("done", ""),
    ]  # fmt: skip
    assert new.endswith(".new")


def test_two_programs_write_at_once_and_one_set_is_left(tmp_path):
    sets = [{x: str(n).encode() * 9 for x in "abc"} for n in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda one: write_all(tmp_path, one), sets))
    assert {x: (tmp_path / x).read_bytes() for x in names(tmp_path)} in sets


@pytest.mark.parametrize("name", ["../a", "a/b", "", ".", ".."])
def test_only_plain_names_are_written(tmp_path, name):
    with pytest.raises(ValueError, match="is not a plain file name"):
        write_all(tmp_path, {name: b""})
    assert names(tmp_path) == []


def test_a_full_disk_and_a_writer_that_is_killed_leave_whole_files():
    script = Path(__file__).parents[1] / "benchmarks" / "faults.py"
    done = subprocess.run(
        [sys.executable, script, "--kills", "3", "--cuts", "1", "--reports", "0"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "quota: File too large; the old files are whole" in done.stdout
    assert "3 kills, seed 1: every file whole, every report of one" in done.stdout


# ---- folders that a stranger sent ---------------------------------------------------


@pytest.mark.parametrize("write_first", [False, True], ids=["settle", "write"])
def test_a_link_in_place_of_a_set_is_not_followed(tmp_path, write_first):
    (tmp_path / "home").mkdir()
    for name in ("keep", "+keep", "-keep"):
        (tmp_path / "home" / name).write_text("mine")
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / ".switch").symlink_to(tmp_path / "home")
    with pytest.raises(OSError, match="was not left by patchstudy") as caught:
        write_all(folder, {"a": b"1"}) if write_first else settle(folder)
    assert caught.value.filename == str(folder / ".switch")
    assert names(tmp_path / "home") == ["+keep", "-keep", "keep"]
    assert names(folder) == [".switch"]


@pytest.mark.parametrize("name", ["other", "+", "-", "-..", "+..", None])
def test_what_no_program_of_ours_left_is_not_touched(tmp_path, name):
    if name is None:
        (tmp_path / ".switch").write_text("a file")
    else:
        (tmp_path / ".switch").mkdir()
        (tmp_path / ".switch" / "-report.html").touch()
        (tmp_path / ".switch" / name).touch()
    (tmp_path / "report.html").write_text("old")
    with pytest.raises(OSError, match="was not left by patchstudy"):
        settle(tmp_path)
    assert (tmp_path / "report.html").read_text() == "old"


def test_pipes_and_links_in_place_of_what_is_written_are_left_alone(tmp_path):
    (tmp_path / "home").mkdir()
    folder = tmp_path / "report"
    folder.mkdir()
    os.mkfifo(folder / ".a.new")
    (folder / ".b.new").symlink_to(tmp_path / "home")
    write_all(folder, {"report.html": b"new"})
    assert names(folder) == [".a.new", ".b.new", "report.html"]
    assert (tmp_path / "home").is_dir()


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "large"])
def test_what_is_no_plain_file_of_a_report_is_not_read(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(files, "LARGEST", 9)
    path = tmp_path / "report.json"
    make = {
        "pipe": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to("/dev/zero"),
        "folder": path.mkdir,
        "large": lambda: path.write_text("0123456789"),
    }
    make[kind]()
    words = "no plain file|Is a directory|larger than"
    with pytest.raises(OSError, match=words):
        files.read(path)


def test_a_folder_that_cannot_be_written_is_named_not_what_was_to_be_in_it(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write_all(tmp_path / "gone", {"report.html": b"new"})
    assert caught.value.filename == str(tmp_path / "gone")


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_no_device_or_pipe_is_replaced_by_a_file(tmp_path, kind):
    path = tmp_path / "out.json"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/null")
    with pytest.raises(OSError, match="no plain file"):
        write(path, b"new")
    assert path.is_fifo() or path.is_symlink()
    assert names(tmp_path) == ["out.json"]
