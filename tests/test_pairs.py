from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchstudy.errors import CaptureError
from patchstudy.loaders import difference, load
from patchstudy.records import Capture, Caveat, Measurement, Severity

GOLDEN = Path(__file__).parent / "golden" / "loaders"


def snapshot(
    *measurements: Measurement, tool: str = "ip_link", bits: int = 64
) -> Capture:
    return Capture(
        path=Path("file"),
        sha256="",
        tool=tool,
        measurements=measurements,
        cumulative=True,
        counter_bits=bits,
    )


def event(value: float, name: str = "rx", **labels: str) -> Measurement:
    return Measurement(metric=f"event:{name}", value=value, labels=labels)


def values(capture: Capture) -> list[float]:
    return [one.value for one in capture.measurements]


def codes(capture: Capture) -> list[str]:
    return [one.code for one in capture.caveats]


@pytest.mark.parametrize(
    ("before", "after", "bits", "delta", "caveats"),
    [
        pytest.param(5, 12, 64, [7], [], id="grew"),
        pytest.param(5, 5, 64, [0], [], id="stood still"),
        pytest.param(2**32 - 1, 4, 32, [5], [], id="32 bits wrapped"),
        pytest.param(2**64 - 1, 4, 64, [5], [], id="64 bits wrapped"),
        pytest.param(2**32 - 1, 4, 64, [5], ["wrapped"], id="a driver of 32 bits"),
        pytest.param(100, 4, 32, [], ["reset"], id="32 bits reset"),
        pytest.param(100, 4, 64, [], ["reset"], id="64 bits reset"),
        pytest.param(2**40, 4, 64, [], ["reset"], id="reset of a large count"),
    ],
)
def test_what_a_counter_grew_by(before, after, bits, delta, caveats):
    pair = snapshot(event(before), bits=bits), snapshot(event(after), bits=bits)
    result = difference(*pair)
    assert values(result) == delta
    assert codes(result) == caveats


@given(st.integers(2**31, 2**32 - 1), st.integers(0, 2**31 - 1))
def test_a_counter_of_32_bits_gives_what_was_counted(before, growth):
    after = snapshot(event((before + growth) % 2**32), bits=32)
    assert values(difference(snapshot(event(before), bits=32), after)) == [growth]


def test_a_fall_beside_a_reset_is_no_wrap():
    before = snapshot(event(2**32 - 1), event(9, "tx"), event(1, "up"))
    after = snapshot(event(4), event(2, "tx"), event(3, "up"))
    result = difference(before, after)
    assert values(result) == [2]
    (caveat,) = result.caveats
    assert "left out: event:rx, event:tx" in caveat.text


def test_a_sum_of_counters_that_wrap_is_the_sum_of_their_growth():
    before = [event(2**32 - 1, cpu="0"), event(10, cpu="1"), event(2**32 + 9)]
    after = [event(4, cpu="0"), event(17, cpu="1"), event(21)]
    result = difference(snapshot(*before, bits=32), snapshot(*after, bits=32))
    assert values(result) == [5, 7, 12]


def test_counters_are_told_apart_by_their_labels():
    before = snapshot(event(1, interface="a"), event(10, interface="b"))
    after = snapshot(event(30, interface="b"), event(3, interface="a"))
    assert values(difference(before, after)) == [20, 2]


def test_exposures_are_subtracted_too():
    before = Measurement(metric="drops", value=1, exposure=100)
    after = Measurement(metric="drops", value=3, exposure=350)
    (result,) = difference(snapshot(before), snapshot(after)).measurements
    assert (result.value, result.exposure) == (2, 250)


def test_an_exposure_that_was_reset_is_not_known():
    before = Measurement(metric="drops", value=0, exposure=100)
    after = Measurement(metric="drops", value=3, exposure=50)
    (result,) = difference(snapshot(before), snapshot(after)).measurements
    assert result.exposure is None


def test_gauges_are_left_out():
    pair = snapshot(event(5, kind="gauge")), snapshot(event(7, kind="gauge"))
    assert values(difference(*pair)) == []


def test_a_counter_in_one_file_only_is_absent_with_a_caveat():
    result = difference(snapshot(event(5)), snapshot(event(7), event(1, "new")))
    assert values(result) == [2]
    assert codes(result) == ["one-sided"]
    assert "event:new" in result.caveats[0].text


def test_nstat_leaves_out_zeros_so_a_new_counter_counts_from_zero():
    before = snapshot(event(5), tool="nstat")
    after = snapshot(event(7), event(1, "new"), tool="nstat")
    assert values(difference(before, after)) == [2, 1]


def test_a_counter_that_nstat_no_longer_prints_was_reset():
    result = difference(snapshot(event(5), tool="nstat"), snapshot(tool="nstat"))
    assert codes(result) == ["reset"]


def test_a_counter_that_stands_twice_is_left_out_with_a_caveat():
    result = difference(snapshot(event(1), event(2)), snapshot(event(5), event(6)))
    assert values(result) == []
    assert codes(result) == ["ambiguous"]


def test_caveats_of_both_files_are_kept_once():
    caveat = Caveat(code="no-line-end", severity=Severity.DOUBT, text="cut")
    one = Capture(
        path=Path("a"), sha256="", tool="uptime", cumulative=True, caveats=(caveat,)
    )
    assert difference(one, one).caveats == (caveat,)


def test_files_of_two_tools_are_refused():
    with pytest.raises(
        CaptureError, match=r"nstat output cannot be compared with .*link"
    ):
        difference(snapshot(), snapshot(tool="nstat"))


def test_a_file_that_is_no_snapshot_is_refused():
    one = Capture(path=Path("a"), sha256="", tool="mpstat")
    with pytest.raises(CaptureError, match="a: mpstat output is no snapshot"):
        difference(one, one)


def golden(name: str) -> dict[str, float]:
    pair = (load(GOLDEN / name.format(time)) for time in ("before", "after"))
    return {one.metric: one.value for one in difference(*pair).measurements}


def test_two_readings_of_uptime_give_the_time_between_them():
    delta = golden("uptime/udp200-egress80.uptime.{}.txt")
    assert delta == {"event:uptime": pytest.approx(4.54)}


def test_the_time_and_number_of_allocations_between_two_readings():
    delta = golden("counters/tcp-p5.tmi_stats.{}.txt")
    assert delta["event:alloc_ns"] / delta["event:alloc_count"] > 180
    assert "event:alloc_max_ns" not in delta


def test_a_bin_that_was_empty_before_counts_from_zero():
    delta = golden("counters/tcp-p5.tmi_stats.{}.txt")
    bins = [value for name, value in delta.items() if name.startswith("event:hist_")]
    assert sum(bins) == delta["event:alloc_count"]


def test_the_kernel_forwarded_what_nstat_and_its_history_say(shared):
    folder = shared / "corpus/sys/nstat"
    pair = [load(folder / f"cap-a-z-{time}.json") for time in ("before", "after")]
    history = load(folder / "cap-delta.json")
    result = {one.metric: one.value for one in difference(*pair).measurements}
    assert result["event:IpForwDatagrams"] == 2029
    assert {one.metric for one in history.measurements} <= result.keys()


def test_every_pair_of_the_lab_has_a_difference(shared):
    pairs = 0
    for path in sorted((shared / "lab").rglob("*.before.*")):
        after = path.with_name(path.name.replace(".before.", ".after."))
        if after.is_file():
            assert not difference(load(path), load(after)).cumulative
            pairs += 1
    assert pairs > 500
