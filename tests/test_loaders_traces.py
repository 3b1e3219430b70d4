"""Tables of tracers and of perf: what they say, and what they hide."""

import math
from pathlib import Path

import pytest

from patchstudy import loaders
from patchstudy.errors import CaptureError
from patchstudy.loaders import LOADERS, difference
from patchstudy.records import Capture, RawFile

FOLDER = Path(__file__).parent / "golden" / "loaders"


def read(tool: str, text: str) -> Capture:
    raw = RawFile.of(Path(f"tcp.{tool}.txt"), text.encode())
    assert LOADERS[tool].sniff(raw)
    return LOADERS[tool].load(raw)


def golden_file(name: str) -> Capture:
    return loaders.load(FOLDER / name)


def values(capture: Capture, metric: str) -> dict[str, float]:
    return {
        " ".join(one.labels.values()): one.value
        for one in capture.measurements
        if one.metric == metric
    }


def codes(capture: Capture) -> list[str]:
    return [one.code for one in capture.caveats]


# ---- function_graph -----------------------------------------------------------------

GRAPH = """\
# tracer: function_graph
#
 0)               |  outer() {
 0)   0.500 us    |    inner [mod]();
 1) # 1837.709 us |  other();
 0)   0.300 us    |    inner [mod]();
 0) + 12.000 us   |  }
"""


def test_a_call_has_its_mean_time_and_its_stack_its_own_time():
    capture = read("ftrace_graph", GRAPH)
    assert values(capture, "calls:inner") == {"": 2}
    assert values(capture, "call_time:inner")[""] == pytest.approx(0.4e-6)
    assert values(capture, "call_time:other")[""] == pytest.approx(1837.709e-6)
    own = {one.frames: one.weight for one in capture.profiles[0].stacks}
    assert own["outer",] == pytest.approx(11200)
    assert own["outer", "inner"] == pytest.approx(800)
    assert capture.profiles[0].unit == "ns"
    assert codes(capture) == ["tracer-overhead"]


def test_every_duration_is_told():
    found = {one.function: one for one in read("ftrace_graph", GRAPH).durations}
    assert found["inner"].upper_s == pytest.approx((0.3e-6, 0.5e-6))
    assert found["inner"].calls == (1, 1)
    assert found["other"].upper_s == pytest.approx((1837.709e-6,))


def test_calls_of_a_task_that_went_away_are_not_those_of_the_next():
    switch = " ------------------------------------------\n 0)   a-1  =>   b-2\n"
    text = GRAPH.replace(" 1) #", switch + " 1) #")
    own = {one.frames for one in read("ftrace_graph", text).profiles[0].stacks}
    assert ("inner",) in own


REPORTED = """\
cpus=2
   <idle>-0     [001]   100.000010: funcgraph_entry:        0.500 us   |  first();
   iperf3-12    [000]   100.000020: funcgraph_entry:                   |  outer() {
   <idle>-0     [001]   100.000021: funcgraph_entry:        1.500 us   |  inner();
   iperf3-12    [001]   100.000022: funcgraph_entry:        2.500 us   |    inner();
   iperf3-12    [001]   100.000030: funcgraph_exit:       + 10.000 us  |  }
"""


def test_calls_that_trace_cmd_reports_are_of_their_task():
    raw = RawFile.of(Path("run.txt"), REPORTED.encode())
    assert not LOADERS["ftrace"].sniff(raw)
    capture = read("ftrace_graph", REPORTED)
    assert values(capture, "calls:inner") == {"": 2}
    assert values(capture, "call_time:inner")[""] == pytest.approx(2e-6)
    own = {one.frames: one.weight for one in capture.profiles[0].stacks}
    assert own["outer",] == pytest.approx(7500)
    assert own["inner",] == pytest.approx(1500)


def test_events_that_trace_cmd_dropped_are_a_doubt():
    capture = read("ftrace_graph", REPORTED + "CPU:1 [12 EVENTS DROPPED]\n")
    assert "events-lost" in codes(capture)


def test_an_end_without_a_beginning_counts_where_it_is_named():
    text = GRAPH + " 2) ! 140.417 us  |      } /* __schedule */\n 2)   1.5 us    |  }\n"
    capture = read("ftrace_graph", text)
    assert values(capture, "calls:__schedule") == {"": 1}
    assert "2 calls began before" in capture.caveats[1].text


# ---- function profiler, hist, stats -------------------------------------------------


def test_the_profiler_is_added_up_over_cpus():
    capture = golden_file("ftrace_profile/hand-two-cpus.txt")
    assert values(capture, "calls:pskb_expand_head") == {"": 1500}
    assert values(capture, "call_time:pskb_expand_head")[""] == pytest.approx(2e-6)


def test_stacks_of_a_hist_trigger_are_a_profile():
    capture = golden_file("trace_hist/tcp-egress80.trace_hist.pskb_expand_head.txt")
    [profile] = capture.profiles
    assert values(capture, "event:hist_hits") == {"": 11}
    assert profile.total == 11
    assert all("pskb_expand_head" in one.frames for one in profile.stacks)


def test_a_hist_trigger_by_thread():
    name = "trace_hist/baseline.tcp-p5.trace_hist.lab_direct.txt"
    hits = values(golden_file(name), "event:hist_hits")
    assert hits[""] == sum(count for thread, count in hits.items() if thread)
    assert hits["ksoftirqd/0"] == 39344


HIST = """\
# trigger info: hist:keys=call_site.sym:vals=bytes_req:sort=hitcount:size=2048 [active]

{ call_site: [ffffffffa00bf6fe] hidraw_send_report [hid]      } hitcount:    1  b:   7
{ call_site: [ffffffffa00bf6ff] hidraw_send_report [hid]      } hitcount:    2  b:   9

Totals:
    Hits: 5
    Entries: 2
    Dropped: 2
"""


def test_symbols_of_a_hist_trigger_are_added_up_and_missing_hits_told():
    capture = read("trace_hist", HIST)
    assert values(capture, "event:hist_hits") == {"": 5, "hidraw_send_report": 3}
    assert values(capture, "event:hist_b") == {"": 16, "hidraw_send_report": 16}
    assert codes(capture) == ["events-lost", "rows-missing"]


def test_values_that_the_trigger_asks_for_in_hex_have_no_0x_before_them():
    text = "# trigger info: hist:keys=a:vals=hitcount,b.hex\n"
    capture = read("trace_hist", text + "{ a: 1 } hitcount: 10  b: 1f\n")
    assert values(capture, "event:hist_hits") == {"": 10, "1": 10}
    assert values(capture, "event:hist_b") == {"": 31, "1": 31}


def test_a_line_that_is_no_entry_is_refused_with_its_number():
    with pytest.raises(CaptureError, match=r":3: 'hm' is no entry of a hist trigger"):
        read("trace_hist", HIST.replace("{ call", "hm\n{ call", 1))


def test_what_a_trace_lost_is_told():
    capture = golden_file("trace_stats/cap-report-stat.txt")
    assert values(capture, "event:trace_overrun") == {"": 55937, "0": 6788, "1": 49149}
    assert "lost 55937 events" in capture.caveats[0].text


# ---- bpftrace, dropwatch ------------------------------------------------------------


def test_maps_of_bpftrace_in_text_and_json():
    text = golden_file("bpftrace/cap-interval.txt")
    assert values(text, "event:@")["iperf3, s0"] == 19164
    document = golden_file("bpftrace/cap-maps.json")
    found = {"hr0": 32736, "hvx0": 33774, "hs0": 36086}
    assert values(document, "event:@bytes") == found
    assert values(document, "event:@st_average") == {"": 477}


def test_stacks_as_keys_are_a_profile():
    text = "Attaching 1 probe...\n\n@k[\n    leaf+7\n    outer+12\n, iperf3]: 4\n"
    [profile] = read("bpftrace", text).profiles
    [stack] = profile.stacks
    assert (stack.frames, stack.samples) == (("outer", "leaf"), 4)
    assert (profile.event, stack.comm) == ("@k", "iperf3")


def test_bounds_of_a_histogram_are_inclusive():
    text = "Attaching 1 probe...\n@us: \n[512, 1K)   3 |@@@@|\n[2]   1 |@   |\n"
    capture = read("bpftrace", text)
    [hist] = capture.facts["histograms"]
    bounds = [{"count": 3, "min": 512, "max": 1023}, {"count": 1, "min": 2, "max": 2}]
    assert hist["buckets"] == bounds
    assert values(capture, "event:@us_count") == {"": 4}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Attaching 1 probe...\nLost 12 events\n@a: 5\n", id="text"),
        pytest.param(
            '{"type": "map", "data": {"@a": 5}}\n'
            '{"type": "lost_events", "data": {"events": 12}}\n',
            id="JSON",
        ),
    ],
)
def test_events_that_bpftrace_lost_are_a_doubt(text):
    capture = read("bpftrace", text)
    assert values(capture, "event:@a") == {"": 5}
    assert codes(capture) == ["events-lost"]
    assert "lost 12 events" in capture.caveats[0].text


def test_a_tuple_is_no_histogram_without_calls():
    capture = read("bpftrace", '{"type": "map", "data": {"@t": {"eth0": [1, 2]}}}\n')
    assert capture.measurements == ()
    assert codes(capture) == ["lines-unread"]


LINEAR = """\
@alloc_ns[tmi]:
(..., 0)               1 |@@@@                                                |
[0, 100)               2 |@@@@@@@@                                            |
[100, 200)             0 |                                                    |
[200, ...)             3 |@@@@@@@@@@@@                                        |

@bytes:
[1K, 2K)               7 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
"""


def test_a_histogram_whose_map_is_named_by_a_unit_of_time_holds_durations():
    capture = read("bpftrace", LINEAR)
    (one,) = capture.durations
    assert one.function == "alloc tmi"
    assert one.upper_s == pytest.approx((1e-7, 2e-7, math.inf))
    assert one.calls == (2, 0, 3)
    assert codes(capture) == ["unit-unknown", "histogram-buckets"]
    assert "histograms @bytes are of times is not told" in capture.caveats[0].text


def test_powers_of_two_of_bpftrace_end_where_the_next_begins():
    durations = golden_file("bpftrace/cap-latency-hist.txt").durations
    found = {one.function: one for one in durations}
    assert found["cs_spin"].upper_s == pytest.approx((8e-6,))
    assert found["my,wrk:[1]"].upper_s[:3] == pytest.approx((1e-6, 2e-6, 4e-6))
    assert found["my,wrk:[1]"].calls[:3] == (5000, 98, 36)


@pytest.mark.parametrize(
    ("bucket", "upper_s"),
    [
        pytest.param("~ 2^4 ", 16e-6, id="power of two"),
        pytest.param("~ 32-63", 63e-6, id="linear"),
    ],
)
def test_a_hist_trigger_by_buckets_of_a_time_holds_durations(bucket, upper_s):
    row = f"{{ lat_us: {bucket} }} hitcount:         12\n"
    text = row + "\nTotals:\n    Hits: 12\n    Entries: 1\n    Dropped: 0\n"
    capture = read("trace_hist", text)
    (one,) = capture.durations
    assert (one.function, one.upper_s, one.calls) == ("lat", (upper_s,), (12,))
    assert codes(capture) == ["histogram-buckets"]


def test_a_probe_that_could_not_be_attached_is_a_failed_run():
    capture = golden_file("bpftrace/cap-error.stderr.txt")
    assert capture.error is not None
    assert capture.measurements == ()


def test_drops_are_added_up_by_place():
    capture = golden_file("dropwatch/hand-summary.txt")
    drops = {"": 6, "kfree_skb_list_reason+2f": 5, "tcp_v4_rcv+8a": 1}
    assert values(capture, "drops") == drops


def test_no_drop_monitor_is_no_run_without_drops():
    capture = golden_file("dropwatch/cap-no-net_dm.stderr.txt")
    assert capture.measurements == ()
    assert "no drop monitor" in str(capture.error)


# ---- perf report and diff -----------------------------------------------------------


def test_the_share_of_a_report_with_its_exact_number_of_samples():
    capture = golden_file("perf_report/cap-ha-before-nochildren-n.txt")
    [one] = [m for m in capture.measurements if m.metric.endswith(":pskb_expand_head")]
    assert (one.value, one.exposure) == (0.0042, 2384)
    assert one.labels == {"share": "self", "event": "cpu-clock"}


def test_a_symbol_below_the_limit_is_absent_and_that_is_told():
    capture = golden_file("perf_report/cap-ha-before-children-graph.txt")
    assert not values(capture, "profile_share:pskb_expand_head")
    shares = values(capture, "profile_share:do_syscall_64")
    assert shares == {"self cpu-clock": 0.008, "inclusive cpu-clock": 0.9698}
    assert "an absent symbol may be in it" in capture.caveats[0].text


def test_the_address_that_v_prints_is_no_part_of_a_symbol():
    text = """\
# Samples: 37  of event 'cpu-clock'
#
# Overhead  Command  Symbol
# ........  .......  ...........................................
#
    24.32%  python3  0xfa994            B [.] lookup
    16.22%  python3  0xffffffff81000000 k [k] read_zero
"""
    capture = read("perf_report", text)
    names = [one.metric for one in capture.measurements]
    assert names == ["profile_share:lookup", "profile_share:read_zero"]


def test_events_that_group_puts_side_by_side_are_kept_apart():
    text = """\
# Samples: 74  of events 'cpu-clock, page-faults'
#
#         Overhead  Symbol
# ................  ..........
#
    26.87%   1.00%  [.] lookup
"""
    capture = read("perf_report", text)
    found = {one.labels["event"]: one.value for one in capture.measurements}
    assert found == {"cpu-clock": 0.2687, "page-faults": 0.01}


def test_events_of_a_report_are_kept_apart():
    found = values(golden_file("perf_report/cap-group.txt"), "profile_share:main")
    assert found["inclusive cpu-clock"] == 0.9706
    assert found["inclusive page-faults"] == 0.9418


def test_a_difference_names_what_is_gone_without_a_zero():
    capture = golden_file("perf_diff/cap-ha-delta.txt")
    found = values(capture, "profile_share:pskb_expand_head")
    assert found == {"self cpu-clock baseline": 0.0042}
    assert "pskb_expand_head" in capture.facts["gone"]
    kept = values(capture, "profile_share:finish_task_switch.isra.0")
    assert kept["self cpu-clock 1"] == pytest.approx(0.0483)


# ---- a driver's own clock -----------------------------------------------------------


def test_time_and_number_of_allocations_become_their_mean():
    pair = [
        FOLDER / f"counters/tcp-p5.tmi_stats.{when}.txt" for when in ("before", "after")
    ]
    delta = difference(*map(loaders.load, pair))
    [count] = values(delta, "alloc_count").values()
    [mean] = values(delta, "alloc_time").values()
    assert count == values(delta, "event:alloc_count")[""]
    assert mean == pytest.approx(values(delta, "event:alloc_ns")[""] / count / 1e9)
    assert 400e-9 < mean < 4000e-9


def test_allocations_are_counted_without_a_clock_too():
    texts = ("alloc_count 5\nfill_count 1\n", "alloc_count 12\nfill_count 3\n")
    delta = difference(*(read("counters", text) for text in texts))
    assert values(delta, "alloc_count") == {"": 7}
    assert values(delta, "alloc_time") == {}
    assert values(delta, "calls:fill") == {}


def test_calls_of_another_name_are_named():
    texts = (
        "fill_ns 1000\nfill_count 2\nother 5\n",
        "fill_ns 5000\nfill_count 4\nother 9\n",
    )
    delta = difference(*(read("counters", text) for text in texts))
    assert values(delta, "call_time:fill")[""] == pytest.approx(2e-6)
    assert values(delta, "calls:fill") == {"": 2}


QUIET = "     9.85%  python3  libpython3.11.so.1.0  [.] _PyEval_EvalFrameDefault\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("\n" + QUIET + QUIET, "without the names of its columns", id="-q"),
        pytest.param(
            "    10.35%     0.00%  python  [unknown]  [k] 0x0\n            |\n",
            "without the names of its columns",
            id="-q with chains",
        ),
        pytest.param(
            "\nAggregated stats:\n           TOTAL events:       4048\n",
            "no shares of symbols",
            id="--stats",
        ),
        pytest.param(
            "#  pid  tid  ppid  comm\n     0    0    -1 |swapper\n",
            "no shares of symbols",
            id="--tasks",
        ),
    ],
)
def test_reports_of_perf_without_a_table_say_what_to_call(text, problem):
    with pytest.raises(CaptureError, match=problem):
        read("perf_report", text)
