"""``perf script``: the quick way equals a slow one, in any form and in any part."""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchstudy import loaders
from patchstudy.blocks import large, perf
from patchstudy.loaders import perf_script
from patchstudy.records import Capture, RawFile

FOLDER = Path(__file__).parent / "golden" / "loaders" / "perf_script"
SAMPLE = (
    "iperf3  5628/5629 [001]   916.125970:    1003009 cpu-clock:k: \n"
    "\tffffffff81e43457 pskb_expand_head+0x57 ([kernel.kallsyms])\n"
    "\tffffffffc0a01234 qmimux_rx_fixup+0x1a0 ([qmi_wwan])\n"
    "\t          10ab59 __send+0x19 (/usr/lib/libc.so.6)\n\n"
)


def read(text: str) -> Capture:
    raw = RawFile.of(Path("tcp.perf_script.txt"), text.encode())
    assert perf_script.sniff(raw)
    return perf_script.load(raw)


def plainly(text: str) -> Counter[tuple[str, str, tuple[str, ...]]]:
    """Return samples by comm, event and stack, as simply as it can be read."""
    found: Counter[tuple[str, str, tuple[str, ...]]] = Counter()
    for record in re.split(r"\n\n+", text.strip("\n")):
        head, *lines = record.split("\n")
        comm, event = re.match(r"(.*?)  77 .* (\S+): $", head).groups()
        names = [line.split(None, 1)[1] for line in lines]
        stack = [re.sub(r"(?:\+0x[0-9a-f]+)? \(.*$", "", name) for name in names]
        found[comm, event, tuple(reversed(stack))] += 1
    return found


def counted(capture: Capture) -> Counter[tuple[str, str, tuple[str, ...]]]:
    return Counter(
        {
            (one.comm, profile.event, one.frames): one.samples
            for profile in capture.profiles
            for one in profile.stacks
        }
    )


def test_a_stack_keeps_its_objects_its_thread_and_its_period():
    [profile] = read(SAMPLE * 2).profiles
    [stack] = profile.stacks
    assert (profile.event, profile.unit, profile.lost) == ("cpu-clock:k", "ns", None)
    assert stack.frames == ("__send", "qmimux_rx_fixup", "pskb_expand_head")
    assert stack.objects == ("/usr/lib/libc.so.6", "[qmi_wwan]", "[kernel.kallsyms]")
    assert (stack.samples, stack.weight, stack.comm) == (2, 2006018, "iperf3")


def test_events_are_profiles_of_their_own():
    capture = loaders.load(FOLDER / "cap-multi-events.txt")
    samples = {one.event: one.samples for one in capture.profiles}
    assert samples == {
        "page-faults": 10, "cpu-clock": 107, "skb:consume_skb": 6, "skb:kfree_skb": 2,
    }  # fmt: skip
    units = [one.unit for one in capture.profiles]
    assert units == ["event", "ns", "sample", "sample"]


@pytest.mark.parametrize(
    ("head", "comm", "event", "unit"),
    [
        pytest.param("a 1 2.5: cycles: ", "a", "cycles", "sample", id="no period"),
        pytest.param("a  1/2 [003] 2.5:  7 cycles:", "a", "cycles", "event", id="all"),
        pytest.param("a 1 cycles:u: ", "a", "cycles:u", "sample", id="no time"),
        pytest.param(
            "12 6/7 [001]   593   8.4:  9 cpu-clock: ",
            "12 6/7 [001]", "cpu-clock", "ns", id="comm like other columns",
        ),
        pytest.param(
            "a 1 2.5: skb:kfree_skb: skbaddr=0x1 reason: X", "a", "skb:kfree_skb",
            "sample", id="tracepoint with arguments",
        ),
        pytest.param("a\t1 [0] 2.5:\t\t10 task-clock:u:", "a", "task-clock:u", "ns",
                     id="tabs"),
        pytest.param("perf ", "perf", None, "sample", id="comm alone"),
        pytest.param("a [001]  2.5: cycles:", "a", "cycles", "sample", id="no pid"),
    ],
)  # fmt: skip
def test_the_fields_of_a_sample_may_be_any(head, comm, event, unit):
    sample = f"{head}\n\t ffffffff81 do_it+0x1 ([kernel.kallsyms])\n\n"
    reader = perf.reader(SAMPLE.encode())
    reader.feed((sample * 3).encode())
    raw = RawFile.of(Path("x"), b"")
    [profile] = perf_script._capture(raw, reader.gathered(), cut=False).profiles
    assert (profile.event, profile.unit, profile.samples) == (event, unit, 3)
    assert {one.comm for one in profile.stacks} == {comm}


@pytest.mark.parametrize(
    "head",
    [
        "a  12 [003]   2.5:    1001001 cpu-clock:u: ",
        "a  12   2.5: cpu-clock:u: ",
        "a  12   2.5: kmem:kmalloc: call_site=x+0x1 ptr=0x1",
        "a  12   2.5: skb:kfree_skb: skbaddr=0x1 reason: X",
    ],
)
def test_samples_with_and_without_a_period_are_read_as_whole_records(head):
    reader = perf.reader(SAMPLE.encode())
    reader.feed(
        (f"{head}\n\t ffffffff81 do_it+0x1 ([kernel.kallsyms])\n\n" * 3).encode()
    )
    sums = reader.gathered()
    assert (sums.in_lines, sum(one for one, _period in sums.table.values())) == (0, 3)


@pytest.mark.parametrize(
    ("head", "stack"),
    [
        ("a 12/12 [001] K     2.5:  9 cycles:", ("\t ff81 do_it+0x1 ([k])\n",)),
        ("a 12 Ku    2.5:  9 cycles:", ("\t ff81 do_it+0x1 ([k])\n",)),
        (
            "a 12 2.5:  9 cycles:",
            ("\t ff81 do_it+0x1 ([k])\n", " 0xf1/0xf2/P/-/-/5  0xf3/0xf4/M/-/-/0 \n"),
        ),
        ("a 12 2.5:  9 cycles:  ff81 do_it+0x1 ([k]) 0xf1/0xf2/P/-/-/5", ()),
        ("a 12 2.5:  9 cycles:  ff81 do_it+0x1 (/a/b/c/d/e/f/g/k)", ()),
    ],
)
def test_modes_and_branches_beside_a_stack_change_nothing(head, stack):
    capture = read((f"{head}\n" + "".join(stack) + "\n") * 3)
    [profile] = capture.profiles
    [found] = profile.stacks
    assert (profile.event, found.comm, found.frames) == ("cycles", "a", ("do_it",))
    assert (found.weight, capture.facts["first_s"]) == (27, 2.5)
    assert not capture.caveats


def test_a_word_where_the_time_should_be_is_no_time():
    capture = read("a 12 foo: bar: x\n\t ffffffff81 do_it+0x1 ([k])\n\n" + SAMPLE)
    assert capture.facts["first_s"] > 0


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ("7f1 [unknown] ([unknown])", ("[unknown]", "[unknown]")),
        ("7f1 f(int, void (*)(int)) (/a b/c (deleted))",
         ("f(int, void (*)(int))", "/a b/c (deleted)")),
        ("7f1 mix+0x8a (inlined)", ("mix", "inlined")),
        ("7f1 operator+(A, B)+0x1 (/x)", ("operator+(A, B)", "/x")),
        ("7f1 mas_leaf_max_gap", ("mas_leaf_max_gap", "")),
        ("7f1 ", ("[unknown]", "")),
    ],
)  # fmt: skip
def test_a_frame_is_a_symbol_without_offset_and_its_object(line, frame):
    assert perf.frame(f"\t  {line}".encode()) == frame


def test_inlined_frames_are_told_behind_their_line_of_source():
    capture = loaders.load(FOLDER / "cap-dwarf-srcline.txt")
    stack = capture.profiles[0].stacks[0]
    assert stack.frames[-1] == "mix_inline"
    assert stack.objects[-3:] == ("/tmp/cs_spin", "inlined", "inlined")


def test_lost_samples_are_told():
    lost = "iperf3  5628  916.2: PERF_RECORD_LOST lost 33\n"
    capture = read(SAMPLE + lost + SAMPLE)
    assert capture.profiles[0].lost == 33
    assert "perf lost 33 samples" in capture.caveats[0].text


def test_a_sample_without_end_is_read_with_a_doubt():
    capture = read(SAMPLE + SAMPLE.rstrip("\n"))
    assert capture.profiles[0].samples == 2
    assert [one.code for one in capture.caveats] == ["no-line-end"]


def test_a_line_that_is_no_frame_is_passed_over_with_a_note():
    capture = read(SAMPLE + "b 1 1.5:   5 cpu-clock:k: \n\t THIS IS NO FRAME\n")
    assert capture.profiles[0].samples == 2
    assert "'THIS IS NO FRAME'" in capture.caveats[-1].text


samples = st.builds(
    lambda comm, event, frames, at: (
        f"{comm}  77 [000]   1.{at:06}:    1001001 {event}: \n"
        + "".join(f"\t{8191 + one:16x} f{one % 4}+0x{one:x} ([m])\n" for one in frames)
        + "\n"
    ),
    st.sampled_from(["a", "my wrk:1/2 (x)", "3 4"]),
    st.sampled_from(["cpu-clock", "cycles:ppp", "skb:kfree_skb"]),
    st.lists(st.integers(0, 40), min_size=1, max_size=6),
    st.integers(0, 999999),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(samples, min_size=1, max_size=30), st.integers(64, 600))
def test_blocks_of_any_size_give_what_a_plain_reader_finds(made, size):
    text = "".join(made)
    before, large._BLOCK = large._BLOCK, size
    try:
        assert counted(read(text)) == plainly(text)
    finally:
        large._BLOCK = before


def test_a_large_file_is_read_in_parts_with_the_same_result(tmp_path, monkeypatch):
    text = "".join(
        (FOLDER / name).read_text() * 20
        for name in ("cap-multi-events.txt", "cap-with-perf-records.txt")
    )
    path = tmp_path / "tcp.perf_script.txt"
    path.write_text(text)
    whole = loaders.load(path)
    monkeypatch.setattr(large, "LARGE", 1000)
    monkeypatch.setattr(large, "_BLOCK", 5000)
    monkeypatch.setattr(large, "_cpus", lambda: 3)
    parts = loaders.load(path)
    assert counted(parts) == counted(whole)
    assert parts.facts == whole.facts
    assert (parts.sha256, parts.caveats) == (whole.sha256, whole.caveats)
