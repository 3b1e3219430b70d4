import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import folded, load
from patchstudy.records import Capture, Profile, RawFile, Stack


def read(text: str | bytes) -> Capture:
    data = text if isinstance(text, bytes) else text.encode()
    raw = RawFile.of(Path("perf_folded.txt"), data)
    assert folded.sniff(raw)
    return folded.load(raw)


def test_frames_keep_their_blanks_and_annotations():
    capture = read("my app-12;read [x];vfs_read_[k] 12\n")
    frames = ("read [x]", "vfs_read_[k]")
    stack = Stack(frames=frames, weight=12, comm="my app-12")
    [profile] = capture.profiles
    assert profile.stacks == (stack,)
    assert (profile.event, profile.unit, profile.samples) == (None, None, None)


@pytest.mark.parametrize(
    ("text", "total"),
    [
        pytest.param("a;b 1\na;c 2\n", 3, id="whole numbers"),
        pytest.param("a;b 1.5\na;c 20.\n", 21.5, id="decimals"),
        pytest.param("a;b 1\r\na;c 2\r\n", 3, id="CRLF"),
        pytest.param("a;b 1\na 2\n", 3, id="a stack of one frame"),
        pytest.param("a;b 1\n".encode("utf-16"), 1, id="UTF-16"),
        pytest.param("a;" * 5000 + "b 4\n", 4, id="one very long line"),
    ],
)
def test_the_weights_add_up(text, total):
    assert read(text).facts["total"] == total


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("iperf3;send 1\nkworker/u3:0-tm;copy 2\n", id="a kernel thread"),
        pytest.param("iperf3;send 1\nswapper;do_idle 2\n", id="the idle thread"),
        pytest.param("ip-?;send 1\niperf-9/10;copy 2\n", id="process numbers"),
        pytest.param("func_ab;_start;main 3\nfunc_ab;odd 1\n", id="where it begins"),
        pytest.param("iperf3;[unknown];send 1\niperf3 1\n", id="no symbol"),
    ],
)
def test_the_name_of_a_thread_is_no_symbol(text):
    roots = {line.split(";")[0].split(" ")[0] for line in text.splitlines()}
    stacks = read(text).profiles[0].stacks
    assert {one.comm for one in stacks} == roots
    assert roots.isdisjoint(frame for one in stacks for frame in one.frames)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("main;copy 1\nmain;send 2\n", id="a function"),
        pytest.param("_start;main;copy 1\n", id="where it begins"),
        pytest.param("ret_from_fork_[k];kthread_[k] 1\n", id="of the kernel"),
    ],
)
def test_a_function_that_begins_a_stack_stays_one(text):
    assert read(text).profiles[0].stacks[0].comm is None


def test_samples_are_counted_only_where_every_stack_tells_them():
    told = Stack(frames=("a",), weight=2e6, samples=2)
    untold = Stack(frames=("b",), weight=1e6)
    profile = Profile(event="cycles", unit="event", stacks=(told, told))
    assert (profile.samples, profile.total) == (4, 4e6)
    assert Profile(event=None, unit=None, stacks=(told, untold)).samples is None


def test_two_counts_a_line_are_refused():
    with pytest.raises(CaptureError, match=r"1: two counts a line"):
        read("a;b 1 2\na;c 0 3\n")


def test_one_frame_that_ends_in_a_number_is_no_second_count():
    assert read("a;loop 2 12\na;c 3\n").facts["total"] == 15


def test_a_line_that_does_not_fit_is_refused_with_its_number():
    with pytest.raises(
        CaptureError, match=r"perf_folded.txt:3: 'rubbish' does not end"
    ):
        read("a;b 1\na;c 2\nrubbish\n")


def test_the_corpus_gives_the_expected_totals(shared):
    folder = shared / "corpus/sys"
    with (folder / "MANIFEST.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["tool"] == "folded"]
    assert len(rows) == 26
    for row in rows:
        wanted = json.loads(row["expected"])
        if row["path"].endswith("before_fractionals.txt"):
            wanted |= {"total": wanted["total"] + 20, "stacks": 8, "bad_lines": 0}
            wanted["top_self_share"] = 27.56 / wanted["total"]  # the list skips "20."
        if wanted.get("bad_lines", 1):
            with pytest.raises(CaptureError):
                load(folder / row["path"])
            continue
        capture = load(folder / row["path"])
        assert capture.facts["total"] == pytest.approx(wanted["total"])
        assert capture.facts["stacks"] == wanted["stacks"]
        assert _top_self(capture) == pytest.approx(wanted["top_self_share"], abs=5e-5)


def _top_self(capture: Capture) -> float:
    [profile] = capture.profiles
    weights: dict[str, float] = {}
    for stack in profile.stacks:
        leaf = stack.frames[-1]
        weights[leaf] = weights.get(leaf, 0) + stack.weight
    return max(weights.values()) / profile.total
