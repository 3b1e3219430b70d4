"""Profiles of both variants become shares of symbols and their difference."""

from dataclasses import replace

import pytest

from patchstudy import profiles, stats
from patchstudy.loaders import load
from patchstudy.moved import Moved
from patchstudy.origins import origin
from patchstudy.records import Capture, Profile, Stack
from patchstudy.study import Source, open_study

DESIGN = """\
question = "Is it faster?"
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
"""
RATE = "metric,unit,value\nthroughput,Mbit/s,100\n"


@pytest.fixture
def profiled(write_study):
    """Return a function that writes a study with these profiles of the variants."""

    def of(**folded):
        files = {"d/baseline/boot-1/run-1/t.x.csv": RATE}
        for variant, texts in folded.items():
            for number, text in enumerate(texts):
                files[f"d/{variant}/boot-9/profile-{number}/t.folded.txt"] = text
        return open_study(write_study(DESIGN, (), files))

    return of


def profile(*stacks):
    made = (Stack(frames=tuple(one.split(";")), weight=n) for one, n in stacks)
    return Profile(event=None, unit=None, stacks=tuple(made))


def test_a_symbol_counts_once_in_a_stack_however_deep():
    shares = profiles.inclusive(profile(("a;b;a_[k];b", 3), ("a;c", 1)))
    assert shares == {"a": 1.0, "b": 0.75, "c": 0.25}


def test_the_leaf_has_the_self_time():
    assert profiles.own(profile(("a;b", 3), ("a_[k]", 1))) == {"b": 0.75, "a": 0.25}


@pytest.mark.parametrize("frame", ["f", "f_[k]", "f_[i]", "f_[j]"])
def test_the_mark_of_a_frame_is_no_part_of_its_name(frame):
    assert profiles.bare(frame) == "f"


def test_self_shares_add_up_to_one():
    shares = profiles.own(profile(("a;b", 3), ("a", 1), ("c;d;e", 0.5)))
    assert sum(shares.values()) == pytest.approx(1)


def test_the_difference_is_sorted_by_size_with_its_sign(profiled):
    study = profiled(
        baseline=["main;copy 40\nmain;send 60\n"],
        patched=["main;send 90\nmain;idle 10\n"],
    )
    table = profiles.difference(study)
    found = dict(zip(table["symbol"], table["change"], strict=True))
    assert next(iter(found)) == "copy"
    assert found == pytest.approx({"copy": -0.4, "send": 0.3, "idle": 0.1, "main": 0})


def test_several_profiles_have_the_same_weight(profiled):
    study = profiled(
        baseline=["main;copy 1\nmain;send 1\n", "main;send 1000\nmain;send 0\n"],
        patched=["main;send 5\nmain;send 5\n"],
    )
    table = profiles.difference(study).set_index("symbol")
    assert table.loc["copy", "inclusive_baseline"] == pytest.approx(0.25)


def test_a_profile_of_one_variant_has_no_difference(profiled):
    study = profiled(baseline=["main;copy 1\nmain;send 1\n"])
    assert profiles.difference(study).empty
    assert list(profiles.difference(study)) == list(profiles.DIFFERENCE_COLUMNS)


def test_two_profiles_of_each_give_the_change_an_interval(profiled):
    study = profiled(
        baseline=["main;copy 40\nmain;send 60\n", "main;copy 44\nmain;send 56\n"],
        patched=["main;copy 10\nmain;send 90\n", "main;copy 14\nmain;send 86\n"],
    )
    row = profiles.difference(study).set_index("symbol").loc["copy"]
    found = stats.welch([0.40, 0.44], [0.10, 0.14]).interval(0.95)
    assert row["change"] == pytest.approx(-0.3)
    assert (row["change_low"], row["change_high"]) == pytest.approx(
        (found.low, found.high)
    )
    assert (row["profiles_baseline"], row["profiles_patched"]) == (2, 2)


def test_one_profile_each_has_no_interval(profiled):
    study = profiled(
        baseline=["main;copy 1\nmain;x 1\n"], patched=["main;x 1\nmain;y 1\n"]
    )
    table = profiles.difference(study)
    assert table[["change_low", "change_high"]].isna().all(axis=None)


def test_the_cost_spreads_the_cpu_time_of_the_run_over_its_packets(profiled):
    study = profiled(
        baseline=["main;copy_[k] 30\nmain;send 50\nswapper;default_idle_[k] 20\n"],
        patched=["main;send 100\nmain;y 0\n"],
    )
    one = profiles.profile_runs(study)[0]
    moves = Moved(seconds=2.0, byte=None, packet=1000, cpu_s=1.6, rate=None,
                  counters=("packets: x", "CPU time: y"), missing=())  # fmt: skip
    one.__dict__["moved"] = moves
    cost, words = one.cost
    assert cost * one.own["copy"] == pytest.approx(1.6 / 1000 * 30 / 80)
    assert words == "share of the busy samples; packets: x; CPU time: y"


def test_without_counters_the_cost_is_absent_with_the_reason(profiled):
    study = profiled(baseline=["main;copy 1\nmain;x 1\n"])
    cost, words = profiles.profile_runs(study)[0].cost
    assert cost is None
    assert "no counter of packets" in words


@pytest.mark.parametrize(
    ("frame", "place", "where"),
    [
        pytest.param("ip_rcv_[k]", None, "kernel", id="mark of the kernel"),
        pytest.param("ip_rcv", "[kernel.kallsyms]", "kernel", id="kernel"),
        pytest.param("ip_rcv", "/usr/lib/debug/vmlinux", "kernel", id="vmlinux"),
        pytest.param("qmimux_rx_fixup", "[qmi_wwan]", "module", id="module"),
        pytest.param("f", "/lib/modules/6.1/x/qmi_wwan.ko.xz", "module", id="file"),
        pytest.param("read", "/usr/bin/iperf3", "user", id="user"),
        pytest.param("clock_gettime", "[vdso]", "user", id="vdso"),
        pytest.param("mwait_idle_with_hints.constprop.0", None, "idle", id="idle"),
        pytest.param("0x7f", "[unknown]", "not told", id="unknown"),
        pytest.param("ip_rcv", None, "not told", id="a name alone"),
    ],
)
def test_where_a_frame_lies(frame, place, where):
    stack = Stack(frames=(frame,), weight=1, objects=() if place is None else (place,))
    assert origin(stack) == where


def test_an_inlined_frame_lies_where_its_caller_does():
    stack = Stack(
        frames=("main", "f", "g"), weight=1, objects=("/bin/x", "[veth]", "inlined")
    )
    assert origin(stack) == "module"


def test_shares_by_origin_add_up_to_one():
    found = profiles.by_origin(
        profile(("a;b_[k]", 3), ("a;c", 1), ("swapper;do_idle_[k]", 4))
    )
    assert found == {"kernel": 0.375, "not told": 0.125, "idle": 0.5}


@pytest.mark.parametrize(
    ("event", "told"),
    [
        pytest.param("cycles:ppp", True, id="cycles"),
        pytest.param("cpu-clock", True, id="clock"),
        pytest.param("", True, id="not told"),
        pytest.param("page-faults", False, id="page faults"),
        pytest.param("kmem:kmalloc", False, id="tracepoint"),
    ],
)
def test_whether_an_event_samples_time(event, told):
    assert profiles.samples_time(event) is told


def test_counts_of_events_are_no_profile_of_time(profiled):
    study = profiled(baseline=["m;copy 1\nm;x 1\n"], patched=["m;copy 1\nm;y 1\n"])
    runs = [
        run if run.measuring else replace(run, sources=(*run.sources, _stacks(study)))
        for run in study.runs
    ]
    (cell,) = profiles.cells(replace(study, runs=tuple(runs)))
    assert cell.event == ""
    assert cell.left_out == ("trace_hist pskb_expand_head",)
    assert [len(one) for one in cell.profiles.values()] == [1, 1]


def _stacks(study):
    """Stacks of a hist trigger, weighted by hits."""
    stacks = (Stack(frames=("a", "copy"), weight=9.0),)
    one = Profile(event=None, unit="event", stacks=stacks)
    return Source(
        place="pskb_expand_head",
        capture=Capture(
            path=study.folder / "x", sha256="", tool="trace_hist", profiles=(one,)
        ),
    )


def test_new_and_gone_symbols_are_named(profiled):
    study = profiled(
        baseline=["main;copy 5\nmain;send 95\n"],
        patched=["main;send 93\nmain;wait 7\n"],
    )
    assert profiles.appeared(profiles.difference(study)) == (["wait"], ["copy"])


def test_the_pair_of_the_corpus(shared):
    """42 of 2384 samples hold pskb_expand_head before, 0 of 2239 after.

    The folded files have periods as weights, nearly the same for every sample.
    """
    folder = shared / "corpus" / "sys" / "folded"
    shares = []
    for name in ("before", "after"):
        (one,) = load(folder / f"cap-ha-{name}.txt").profiles
        shares.append(profiles.inclusive(one).get("pskb_expand_head", 0.0))
        held = profiles.holding(one, ["pskb_expand_head"]) / one.total
        assert held == pytest.approx(shares[-1])
    assert shares == [pytest.approx(42 / 2384, rel=1e-4), 0.0]


def test_evidence_gives_the_share_of_each_variant(profiled):
    study = profiled(
        baseline=["main;copy 1\nmain;send 3\n"], patched=["main;send 5\nmain;send 5\n"]
    )
    (found,) = profiles.evidence(study, "copy")
    assert found.shares == {"baseline": (0.25,), "patched": (0.0,)}
    assert found.paths == (
        "d/baseline/boot-9/profile-0/t.folded.txt",
        "d/patched/boot-9/profile-0/t.folded.txt",
    )


def test_a_profile_without_weight_says_nothing(profiled):
    study = profiled(baseline=["main;copy 0\nmain;send 0\n"])
    assert profiles.profile_runs(study) == ()
    assert list(profiles.evidence(study, "copy")) == []


def test_named_symbols_are_told_first_then_those_that_are_gone(profiled):
    study = profiled(
        baseline=["main;copy 5\nmain;send 55\nmain;recv 40\n"],
        patched=["main;send 35\nmain;recv 65\n"],
    )
    told = profiles.telling(profiles.difference(study), ["send"], 2)
    assert told["symbol"].to_list() == ["send", "copy"]
