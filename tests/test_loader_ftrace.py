"""Events of ftrace and trace-cmd: counts by name, context, thread and call site."""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchstudy import loaders
from patchstudy.blocks import large
from patchstudy.loaders import ftrace
from patchstudy.records import Capture, RawFile

FOLDER = Path(__file__).parent / "golden" / "loaders" / "ftrace"
HEAD = "# tracer: nop\n#\n"


def read(text: str) -> Capture:
    raw = RawFile.of(Path("tcp.ftrace.txt"), text.encode())
    assert ftrace.sniff(raw)
    return ftrace.load(raw)


def values(capture: Capture, metric: str) -> dict[str, float]:
    """Return the values of a metric by their labels, joined."""
    return {
        " ".join(one.labels.values()): one.value
        for one in capture.measurements
        if one.metric == metric
    }


def test_allocations_by_call_site():
    capture = loaders.load(FOLDER / "cap-kmalloc-before.txt")
    assert values(capture, "event:kmalloc")[""] == 206
    assert values(capture, "alloc_count")["kmalloc pskb_expand_head"] == 101
    assert values(capture, "alloc_count")[""] == 206
    assert values(capture, "event:kmalloc_bytes")["pskb_expand_head"] == 205824


def test_the_pair_of_the_corpus(shared):
    """101 kmallocs by pskb_expand_head before, none after; as the kernel counted."""
    counts = {}
    for name, events in (("before", 206), ("after", 105)):
        path = shared / "corpus" / "sys" / "ftrace" / f"cap-kmalloc-{name}.txt"
        if not path.is_file():
            continue
        capture = loaders.load(path)
        assert capture.facts["events"] == events
        assert "events-lost" not in {one.code for one in capture.caveats}
        sites = values(capture, "alloc_count")
        counts[name] = sites.get("kmalloc pskb_expand_head", 0)
    assert counts in ({"before": 101, "after": 0}, {"before": 101})


def test_contexts_are_told_apart_by_the_flags():
    line = (
        "   kworker/0:1-7       [000] {}  1.000001: kmalloc: call_site=a+0x1/0x2 x=1\n"
    )
    text = "".join(map(line.format, ["d.h1.", "..s1.", ".....", "d.H1.", "dNs5."]))
    found = values(read(HEAD + text), "event:kmalloc")
    contexts = {"": 5, "hardirq": 2, "softirq": 2, "task": 1, "kworker/0:1": 5}
    assert found == contexts


@pytest.mark.parametrize(
    "line",
    [
        "          iperf3-2778   [000]   1909.893826: netif_rx: dev=hr0",
        "          iperf3-2778   (  27854) [001] ..s1.  1910.7: netif_rx: dev=hr0",
        "          iperf3-2778     1..s1. 39769us+: netif_rx: dev=hr0",
        " iperf3  2792   1 16 00000001 0000000d [71f21e01] 5.6ms (+0.1ms): netif_rx: a",
        "          iperf3-615   [000]  2042.801437: netif_rx:     dev=hr0 skbaddr=0x1",
        "a.dat:           iperf3-615   [000]  2042.801437: netif_rx:    dev=hr0",
        "\t   <...>-15430 [006]  7115.449594: netif_rx:          dev=hr0",
        "12345 [001] 6.7-28036   [000] dNs4.  1914.100072: netif_rx: dev=hr0",
        "          iperf3-25     [000] ..s1. 4679725507722: netif_rx: dev=hr0",
        "          iperf3-25     [000] ..s1.   91.1: (+12) netif_rx: dev=hr0",
    ],
)
def test_an_event_is_found_in_any_form(line):
    capture = read(HEAD + (line + "\n") * 3)
    assert values(capture, "event:netif_rx")[""] == 3
    assert not [one for one in capture.caveats if one.code == "lines-unread"]


def test_calls_of_the_function_tracer_and_of_kprobes():
    text = (
        "          usleep-2665  [001] d.h1  4.475409: hrtimer_interrupt <-smp_apic\n"
        "          usleep-2665  [001] d.h1  4.47: lab: (pskb_expand_head+0x0/0x3) x\n"
        "          usleep-2665  [001] d.h1  4.475411: lab2: (ip_rcv+0x5/0x3) x=1\n"
    )
    capture = read("# tracer: function\n#\n" + text * 2)
    assert values(capture, "calls:hrtimer_interrupt")[""] == 2
    assert values(capture, "calls:pskb_expand_head") == {"lab": 2}
    assert not values(capture, "calls:ip_rcv")


def test_stack_traces_are_a_profile_of_their_event():
    line = "          iperf3-27958   [001] ..s1.  1.9: "
    text = f"{line}netif_rx: dev=hr0\n{line}<stack trace>\n => leaf\n => outer\n"
    other = f"{line}kfree_skb: location=x reason: NO_SOCKET\n"
    capture = read(HEAD + text * 2 + other)
    [profile] = capture.profiles
    [stack] = profile.stacks
    assert (profile.event, stack.frames) == ("netif_rx", ("outer", "leaf"))
    assert (stack.samples, stack.comm) == (2, "iperf3")
    assert values(capture, "event:kfree_skb")["NO_SOCKET"] == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cap-overrun.txt", "19550 of 20121 entries were overwritten"),
        ("cap-trace_pipe-lost.txt", "15720 events were lost"),
        ("cap-trace-cmd-dropped.txt", "381 events were lost"),
    ],
)
def test_lost_events_are_a_doubt(name, text):
    [caveat] = loaders.load(FOLDER / name).caveats
    assert (caveat.code, text in caveat.text) == ("events-lost", True)


def test_times_of_a_counting_clock_are_no_seconds():
    capture = loaders.load(FOLDER / "cap-clock-counter.txt")
    assert [one.code for one in capture.caveats] == ["clock-ticks"]
    assert "first_s" not in capture.facts


events = st.builds(
    lambda comm, event, flags, at: (
        f"{comm:>16}-{at % 30000:<7} [00{at % 2}] {flags}  "
        f"{1900 + at / 1e6:.6f}: {event}\n"
    ),
    st.sampled_from(["iperf3", "my wrk:1/2 (x)", "a: b-1 [000]", "<...>"]),
    st.sampled_from(
        [
            "netif_rx: dev=hr0 skbaddr=1",
            "kmalloc: call_site=f+0x1/0x2 ptr=1 bytes_req=5 bytes_alloc=8 gfp_flags=0",
            "kmalloc: call_site=g+0x1/0x2 ptr=1 bytes_req=5 bytes_alloc=16 gfp_flags=0",
            "kfree_skb: skbaddr=1 location=x+0x1/0x2 reason: TCP_OLD_DATA",
            "tracing_mark_write: : kmalloc: call_site=no",
            "a_very_long_name_of_an_event_that_is_not_cut: x=1",
        ]
    ),
    st.sampled_from([".....", "..s1.", "d.h1."]),
    st.integers(0, 90000),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(events, min_size=1, max_size=60), st.integers(200, 2000))
def test_blocks_of_any_size_give_what_a_plain_reader_finds(made, size):
    text = HEAD + "".join(made)
    before, large._BLOCK = large._BLOCK, size
    try:
        capture = read(text)
    finally:
        large._BLOCK = before
    plain = Counter(re.findall(r"\[00\d\] \S{5} +[\d.]+: (\w+): ", text))
    found = {
        one.metric.removeprefix("event:"): one.value
        for one in capture.measurements
        if one.metric.startswith("event:") and not one.labels
    }
    assert found == plain
    sites = Counter(re.findall(r"\d: kmalloc: call_site=(\w)\+\S+ ptr=", text))
    assert values(capture, "alloc_count") == (
        {f"kmalloc {one}": count for one, count in sites.items()}
        | ({"": sum(sites.values())} if sites else {})
    )


def test_a_large_trace_is_read_in_parts_with_the_same_result(tmp_path, monkeypatch):
    header, _, body = (FOLDER / "cap-kmalloc-before.txt").read_text().partition("  ip")
    path = tmp_path / "tcp.ftrace.txt"
    path.write_text(header + ("  ip" + body) * 20)
    whole = loaders.load(path)
    monkeypatch.setattr(large, "LARGE", 1000)
    monkeypatch.setattr(large, "_BLOCK", 5000)
    monkeypatch.setattr(large, "_cpus", lambda: 3)
    parts = loaders.load(path)
    assert parts == whole
