"""What large traces say is kept: the same capture comes back, or none."""

import ast
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import platformdirs
import pytest
from pyarrow import parquet

from patchstudy import loaders
from patchstudy.cli import main
from patchstudy.errors import CaptureError
from patchstudy.loaders import ftrace, parsed, perf_script
from patchstudy.records import Capture, Profile, Stack
from patchstudy.variables import PARSED

ROOT = Path(__file__).parents[1]
Capsys = pytest.CaptureFixture[str]
GOLDEN = Path(__file__).parent / "golden" / "loaders"
TRACES = sorted(
    path
    for tool in ("ftrace", "perf_script")
    for path in (GOLDEN / tool).glob("*.txt")
    if "empty" not in path.name
)
ODD = (
    'iperf3 4111/4111 10.5:   250000 cpu-clock:ppp:\n\tffff <b>&\u202e"\\ x+0x1 (k)\n\n'
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "kept"
    monkeypatch.setenv(PARSED, str(place))
    monkeypatch.setattr(parsed, "WORTH", 0)
    return place


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "tcp.perf_script.txt"
    shutil.copy(GOLDEN / "perf_script" / "cap-multi-events.txt", path)
    return path


def never(*_: object) -> Capture:
    raise AssertionError("read again")


@pytest.fixture
def traced(made: Callable[[], Path]) -> Path:
    """Return a study with a large trace of each variant."""
    study = made()
    samples = (GOLDEN / "perf_script" / "cap-multi-events.txt").read_text()
    repeats = parsed.WORTH // len(samples) + 1
    for variant in ("baseline", "patched"):
        place = study / "router" / variant / "boot-1" / "profile-01"
        place.mkdir(parents=True)
        text = samples * (repeats if variant == "patched" else repeats + 1)
        (place / "tcp.perf_script.txt").write_text(text)
    return study


def refused(*_: object) -> None:
    raise PermissionError("not yours")


@pytest.mark.parametrize("path", TRACES, ids=lambda one: one.name)
def test_a_kept_capture_is_the_one_that_was_read(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PARSED)
    plain = loaders.load(path)
    monkeypatch.setenv(PARSED, str(folder))
    assert loaders.load(path) == plain
    assert len(list(folder.iterdir())) == 1
    monkeypatch.setattr(ftrace, "load", never)
    monkeypatch.setattr(perf_script, "load", never)
    again = loaders.load(path)
    assert again == plain
    # also of numbers that are equal: 3 is not 3.0
    assert repr(asdict(again)) == repr(asdict(plain))


def test_the_same_bytes_elsewhere_are_found_under_their_own_path(
    trace: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = loaders.load(trace)
    moved = trace.with_name("udp.perf_script.txt")
    trace.rename(moved)
    monkeypatch.setattr(perf_script, "load", never)
    assert loaders.load(moved) == replace(first, path=moved)
    assert len(list(folder.iterdir())) == 1


def test_other_bytes_are_read(trace: Path, folder: Path) -> None:
    first = loaders.load(trace)
    trace.write_text(trace.read_text() + "\n" + ODD)
    second = loaders.load(trace)
    assert second.sha256 != first.sha256
    assert second.profiles != first.profiles
    assert len(list(folder.iterdir())) == 2


def test_other_code_reads_anew(
    trace: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaders.load(trace)
    monkeypatch.setattr(parsed, "code", lambda: "0" * 16)
    loaders.load(trace)
    assert len(list(folder.iterdir())) == 2


def test_the_key_covers_all_that_a_loader_imports() -> None:
    own = ROOT / "lib" / "patchstudy"
    for name in parsed.CODE:
        place = own / name
        for path in place.rglob("*.py") if place.is_dir() else [place]:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module:
                    parts = node.module.split(".")
                    if parts[0] == "patchstudy":
                        used = [parts[1]] if parts[1:] else [x.name for x in node.names]
                        known = {one.removesuffix(".py") for one in parsed.CODE}
                        assert known.issuperset(used), path


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _flipped(path: Path) -> None:
    """Change the weight of a stack, where only a checksum can tell."""
    data = bytearray(path.read_bytes())
    data[len(data) // 8] ^= 1
    path.write_bytes(data)


def _other(path: Path) -> None:
    table = parquet.read_table(path)
    parquet.write_table(table.select(["weight"]), path)


def _told_otherwise(path: Path) -> None:
    table = parquet.read_table(path)
    metadata = dict(table.schema.metadata)
    metadata[b"capture"] = metadata[b"capture"].replace(b"perf", b"pref")
    parquet.write_table(table.replace_schema_metadata(metadata), path)


@pytest.mark.parametrize("damage", [_cut, _empty, _flipped, _other, _told_otherwise])
def test_a_damaged_one_is_read_anew(
    damage: Callable[[Path], None], trace: Path, folder: Path
) -> None:
    plain = loaders.load(trace)
    (place,) = folder.iterdir()
    whole = place.read_bytes()
    damage(place)
    assert loaders.load(trace) == plain
    assert place.read_bytes() == whole


def test_what_would_come_back_otherwise_is_not_kept(folder: Path) -> None:
    stacks = (
        Stack(frames=("a",), weight=1),
        Stack(frames=("b",), weight=1.5),
    )
    mixed = Profile(event="cycles", unit="event", stacks=stacks)
    capture = Capture(path=Path("x"), sha256="0", tool="t", profiles=(mixed,))
    tuples = replace(capture, profiles=(), facts={"a": (1, 2)})
    for one in (capture, tuples):
        found = parsed.kept("0" * 64, Path("x"), lambda one=one: one)
        assert found is one
        assert not folder.exists()


def test_an_error_is_raised_each_time(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "tcp.perf_script.txt"
    path.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(CaptureError, match="empty file"):
            loaders.load(path)
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_costs_time_only(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = loaders.load(trace)
    monkeypatch.setattr(parsed, "WORTH", 0)
    monkeypatch.setenv(PARSED, str(trace / "below-a-file"))
    assert loaders.load(trace) == plain


def test_a_folder_that_can_be_read_only_is_used(
    trace: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = loaders.load(trace)
    monkeypatch.setattr(perf_script, "load", never)
    monkeypatch.setattr(os, "utime", refused)
    assert folder.is_dir()
    assert loaders.load(trace) == plain


def test_small_files_and_other_tools_are_not_kept(
    trace: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = next((GOLDEN / "iperf3").glob("*.json"))
    loaders.load(other)
    monkeypatch.setattr(parsed, "WORTH", trace.stat().st_size + 1)
    loaders.load(trace)
    assert not folder.exists()


def test_two_programs_keep_the_same_one_at_once(trace: Path, folder: Path) -> None:
    plain = loaders.load(trace)
    shutil.rmtree(folder)
    program = (
        "import sys; from pathlib import Path; from patchstudy import loaders\n"
        "from patchstudy.loaders import parsed; parsed.WORTH = 0\n"
        "sys.stdin.readline()\n"
        "print(repr(loaders.load(Path(sys.argv[1]))))"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(trace)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "lib")},
        )
        for _ in range(4)
    ]
    for one in running:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    assert [one.communicate()[0].strip() for one in running] == [repr(plain)] * 4
    assert len(list(folder.iterdir())) == 1


def test_a_report_is_the_same_with_what_was_kept(
    traced: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, cache = tmp_path / "reports", tmp_path / "cache"
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *_, **__: cache)
    words = ["report", str(traced), "-o", str(out), "--formats", "text", "--quiet"]

    def reported(*more: str) -> dict[str, bytes]:
        assert main([*words, "--force", *more]) == 0
        names = ("report.ipynb", "report.json", "report.txt")
        return {name: (out / "driver/patch" / name).read_bytes() for name in names}

    plain = reported("--no-parsed")
    assert b"cpu-clock" in plain["report.ipynb"]
    assert not cache.exists()
    assert reported() == plain
    kept = {one: one.stat().st_mtime_ns for one in (cache / "parsed").iterdir()}
    assert len(kept) == 2
    assert reported() == plain
    assert all(one.stat().st_mtime_ns > before for one, before in kept.items())
    assert reported("--parsed", str(tmp_path / "mine")) == plain
    assert len(list((tmp_path / "mine").iterdir())) == 2


def test_what_was_kept_counts_nothing_when_numbers_are_verified(
    traced: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    out, kept = tmp_path / "reports", tmp_path / "kept"
    words = ["report", str(traced), "-o", str(out), "--formats", "text", "--quiet"]
    assert main([*words, "--no-parsed"]) == 0
    monkeypatch.setenv(PARSED, str(kept))
    for path in traced.rglob("*.perf_script.txt"):
        wrong = replace(loaders.load(path), profiles=())
        parsed._write(next(iter(kept.iterdir())), wrong)
        assert loaders.load(path) == wrong
        (place,) = kept.iterdir()
        place.rename(tmp_path / place.name)
    for place in tmp_path.glob("*.parquet"):
        place.rename(kept / place.name)
    capsys.readouterr()
    assert main(["verify", str(out)]) == 0
    assert "derived again, and the same" in capsys.readouterr().out


def test_what_was_not_used_for_long_goes(
    trace: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaders.load(trace)
    (place,) = folder.iterdir()
    other = folder / "mine.txt"
    other.write_text("x")
    parsed.tidy(folder)
    assert place.exists()
    long_ago = time.time() - 31 * 24 * 3600
    os.utime(place, (long_ago, long_ago))
    loaders.load(trace)  # used: it counts from now
    parsed.tidy(folder)
    assert place.exists()
    monkeypatch.setattr(parsed, "_MOST", 10)
    parsed.tidy(folder)
    assert not place.exists()
    assert other.exists()
    parsed.tidy(folder / "none")
