"""The figures of the section "why": what they draw, in words and numbers."""

import pandas as pd
import pytest

from patchstudy import figures

COSTS = pd.DataFrame(
    {
        "device": "d",
        "workload": "w",
        "symbol": ["memset", "<b>$x$</b>"],
        "self_cost_baseline": [4.2e-6, 1e-6],
        "self_cost_patched": [6.6e-6, 0.0],
    }
)
CALLS = pd.DataFrame(
    [
        {"device": "d", "workload": "w", "variant": variant, "function": "alloc",
         "tool": "counters", "runs": "measured", "cost_s": cost, "calls": count}
        for variant, cost, count in (
            ("baseline", 2e-6, 30), ("baseline", 4e-6, 10), ("patched", 5e-7, 40),
        )
    ]
)  # fmt: skip
LOADS = pd.DataFrame(
    [
        {"device": "d", "workload": "w", "variant": variant, "cpu": str(cpu),
         "order": run, "value": 0.1 * cpu + 0.05 * (variant == "patched")}
        for variant in ("patched", "baseline")
        for cpu in range(3)
        for run in range(4)
    ]
)  # fmt: skip


def axes_of(plot):
    return plot.plot()._figure.axes


def test_costs_are_drawn_in_ns_per_packet():
    (axes,) = axes_of(figures.profile_costs(COSTS))
    assert axes.get_xlabel() == "Own CPU time (self) [ns per packet]"
    assert [one.get_text() for one in axes.texts] == ["4200", "1000", "6600", "0"]
    names = [one.get_text() for one in axes.get_yticklabels()]
    assert names == ["memset", r"<b>\$x\$</b>"]


def test_the_steps_reach_all_calls():
    (axes,) = axes_of(figures.cost_ecdf(CALLS))
    base, new = axes.lines
    assert base.get_ydata().tolist() == [0, 75, 100, 100]
    assert base.get_xdata().tolist()[1:3] == pytest.approx([2000, 4000])
    assert new.get_ydata().tolist() == [0, 100, 100]
    assert base.get_linestyle() != new.get_linestyle()


@pytest.mark.parametrize("costs", [[2.6e-6] * 3, [1e-9, 2e-5, 3e-2]])
def test_a_cost_can_be_read_off_its_axis(costs):
    (axes,) = axes_of(figures.cost_ecdf(CALLS.assign(cost_s=costs)))
    low, high = axes.get_xlim()
    ticks = [x for x in axes.xaxis.get_majorticklocs() if low <= x <= high]
    named = axes.xaxis.get_major_formatter().format_ticks(ticks)
    assert 2 <= len(named) <= 12
    assert [float(one.replace(",", "")) for one in named] == pytest.approx(ticks)


def test_a_line_ends_below_all_calls_where_the_last_bin_has_no_end():
    more = CALLS.assign(cost_s=CALLS["cost_s"].replace(4e-6, float("inf")))
    (axes,) = axes_of(figures.cost_ecdf(more))
    assert axes.lines[0].get_ydata().tolist() == [0, 75, 75]


def test_a_cell_a_run_and_the_median_beside():
    (axes,) = axes_of(figures.cpu_strip(LOADS))
    assert len(axes.patches) == 24
    names = [one.get_text() for one in axes.get_yticklabels()]
    assert names[:2] == ["CPU 0, baseline", "CPU 0, patched"]
    assert [one.get_text() for one in axes.texts] == [
        "0 %", "5 %", "10 %", "15 %", "20 %", "25 %",
    ]  # fmt: skip


def test_of_many_cpus_the_busiest_are_drawn():
    many = pd.concat(
        [LOADS.assign(cpu=str(at), value=at / 100) for at in range(40)],
        ignore_index=True,
    )
    (axes,) = axes_of(figures.cpu_strip(many))
    names = [one.get_text() for one in axes.get_yticklabels()]
    assert names[0] == "CPU 24, baseline"
    assert len(names) == 32


@pytest.mark.parametrize(
    ("draw", "table"),
    [
        pytest.param(figures.profile_costs, COSTS, id="costs"),
        pytest.param(figures.cost_ecdf, CALLS, id="ecdf"),
        pytest.param(figures.cpu_strip, LOADS, id="strip"),
    ],
)
def test_the_same_table_makes_the_same_bytes_and_none_is_refused(draw, table):
    assert figures.to_svg(draw(table)) == figures.to_svg(draw(table))
    with pytest.raises(ValueError, match="nothing to draw"):
        draw(table.head(0))
