"""Named symbols and counters, as the profile runs have them."""

import pytest

from patchstudy.mechanism import Holds, explanations
from patchstudy.study import open_study

DESIGN = """\
question = "Is it faster?"
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
[[metrics]]
name = "{name}"
role = "mechanism"
expect = "{expect}"
{where}
"""


@pytest.fixture
def told(write_study):
    def of(name, files, *, expect="lower", where=""):
        design = DESIGN.format(name=name, expect=expect, where=where)
        rate = "metric,unit,value\nthroughput,bit/s,1\n"
        files = {**files, "d/baseline/boot-1/run-1/t.x.csv": rate}
        return list(explanations(open_study(write_study(design, (), files))))

    return of


def folded(baseline, patched):
    """Files of profiles with so many of a thousand samples in ``copy``."""
    return {
        f"d/{variant}/boot-9/profile-{at}/t.folded.txt": (
            f"main;copy {count}\nmain;send {1000 - count}\n"
        )
        for variant, counts in (("baseline", baseline), ("patched", patched))
        for at, count in enumerate(counts)
    }


def test_one_profile_each_says_so_and_how_many_samples(told):
    (one,) = told("profile_share:copy", folded([37], [0]))
    assert one.sentence == (
        "copy is in 3.70 % of the baseline profile [37 of 1000 samples] and 0.00 % of "
        "the patched profile [0 of 1000 samples] (one profile each, no interval): as "
        "expected."
    )
    assert (one.change, one.holds) == (None, Holds.YES)


def test_several_profiles_give_an_interval(told):
    (one,) = told("profile_share:copy", folded([37, 40, 35], [10, 12, 9]))
    assert one.change.high < 0
    assert one.holds is Holds.YES
    assert "means of 3 and 3 profiles, change -2.7 pp [" in one.sentence


@pytest.mark.parametrize(
    ("baseline", "patched", "expect", "holds"),
    [
        pytest.param([37], [20], "lower", Holds.UNKNOWN, id="less, one each"),
        pytest.param([0], [20], "lower", Holds.NO, id="there is nothing to lose"),
        pytest.param([0], [20], "higher", Holds.YES, id="new, as it should be"),
        pytest.param([10, 12], [37, 40], "lower", Holds.NO, id="more"),
        pytest.param([10, 40], [20, 37], "lower", Holds.UNKNOWN, id="noise"),
        pytest.param([37], [0], "", Holds.NOT_ASKED, id="nothing expected"),
    ],
)
def test_whether_it_is_as_expected(told, baseline, patched, expect, holds):
    files = folded(baseline, patched)
    (one,) = told("profile_share:copy", files, expect=expect)
    assert one.holds is holds


def probes(hits):
    return f"  {'lab_pe':<44} {hits:>15} {0:>15}\n"


def counted(baseline, patched):
    files = {}
    for variant, hits in (("baseline", baseline), ("patched", patched)):
        folder = f"d/{variant}/boot-9/profile-1"
        for time, value in (("before", 0), ("after", hits)):
            files[f"{folder}/t.kprobe_profile.{time}.txt"] = probes(value)
    return files


def test_a_counter_of_a_probe_is_read_in_the_profile_runs(told):
    (one,) = told(
        "event:kprobe_hits", counted(32965, 11), where='where = { probe = "lab_pe" }'
    )
    assert one.values == {"baseline": (32965,), "patched": (11,)}
    assert one.holds is Holds.YES
    assert one.sentence == (
        "kprobe_hits of lab_pe: 32,965 in the baseline profile run, 11 in the patched "
        "profile run (one profile each, no interval): as expected."
    )


def test_another_probe_is_not_meant(told):
    where = 'where = { probe = "other" }'
    assert told("event:kprobe_hits", counted(5, 1), where=where) == []


def test_no_cost_is_known_without_packets(told):
    (one,) = told("profile_cost:copy", folded([37], [0]))
    assert one.values == {"baseline": (), "patched": ()}
    assert one.holds is Holds.UNKNOWN
    assert "no known cost" in one.sentence


def rows(metric, unit, baseline, patched):
    """Files of profile runs with a value each, as a table of measurements."""
    return {
        f"d/{variant}/boot-9/profile-{at}/t.x.csv": (
            f"metric,unit,value\n{metric},{unit},{value}\n"
        )
        for variant, values in (("baseline", baseline), ("patched", patched))
        for at, value in enumerate(values)
    }


def test_a_time_and_its_change_are_told_in_the_units_of_time(told):
    (one,) = told("alloc_time", rows("alloc_time", "us", [9, 9.2], [1.2, 1.3]))
    assert one.holds is Holds.YES
    assert one.sentence.startswith(
        "alloc_time: 9.100 us in the baseline profile run, 1.250 us in the patched "
        "profile run (means of 2 and 2 profiles, change -7.8 us [-8.5"
    )
    assert "pp" not in one.sentence


def test_a_small_change_of_a_time_has_a_smaller_unit(told):
    values = [9.059, 9.060, 9.061], [9.048, 9.049, 9.050]
    (one,) = told("alloc_time", rows("alloc_time", "us", *values))
    assert "change -11.0 ns [-13.3, -8.7]" in one.sentence


def test_a_time_of_a_call_is_not_divided_by_packets(told):
    files = rows("alloc_time", "us", [9, 9.2], [1.2, 1.3])
    for name in tuple(files):
        files[name] += "event:IpForwDatagrams,1,1000\n"
    (one,) = told("alloc_time", files)
    assert one.per_packet == {}
    assert " packets" not in one.sentence


def test_the_change_of_a_count_has_no_unit(told):
    (one,) = told("event:copies", rows("event:copies", "1", [1000, 1010], [10, 12]))
    assert "1,005 in the baseline profile run, 11 in" in one.sentence
    assert "change -994 [" in one.sentence


KMALLOC = (
    "          iperf3-1     [000] b..1.  1.00000{at}: kmalloc: call_site={site}+0x1/0x2"
    " ptr=0 bytes_req=64 bytes_alloc=64 gfp_flags=GFP_ATOMIC\n"
)


def allocations(*sites, lost=0):
    """A trace of these allocations, the last ones of a few more."""
    head = "# tracer: nop\n#\n"
    head += (
        f"# entries-in-buffer/entries-written: {len(sites)}/{len(sites) + lost}\n#\n"
    )
    return head + "".join(KMALLOC.format(at=at, site=x) for at, x in enumerate(sites))


def traces(baseline, patched):
    return {
        f"d/{variant}/boot-9/profile-1/t.ftrace.txt": text
        for variant, text in (("baseline", baseline), ("patched", patched))
    }


def test_a_call_site_that_a_whole_trace_does_not_tell_has_none(told):
    (one,) = told(
        "alloc_count",
        traces(allocations("copy", "copy", "send"), allocations("send", "send")),
        where='where = { call_site = "copy" }',
    )
    assert one.values == {"baseline": (2,), "patched": (0,)}
    assert one.holds is Holds.YES


def test_a_trace_with_holes_does_not_tell_that_there_is_none(told):
    (one,) = told(
        "alloc_count",
        traces(allocations("copy", "send"), allocations("send", "send", lost=7)),
        where='where = { call_site = "copy" }',
    )
    assert one.values == {"baseline": (1,)}
    assert one.holds is Holds.UNKNOWN


def test_a_count_is_that_of_the_whole_not_of_its_parts_too(told):
    (one,) = told(
        "event:kmalloc", traces(allocations("copy", "send"), allocations("send"))
    )
    assert one.values == {"baseline": (2,), "patched": (1,)}
