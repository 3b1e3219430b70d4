"""What the figures draw, asked of the compiled plot; no pixels."""

import re
import subprocess
import sys
import warnings
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import seaborn.objects as so

from patchstudy import figures
from patchstudy.figures import theme

HOSTILE = r"$\frac{a}{b}$"


def drawn(plot):
    """Compile a plot to its matplotlib figure."""
    figure = plot.plot()._figure
    figure.draw_without_rendering()
    return figure


def words(figure):
    return {text.get_text() for text in figure.findobj(plt.Text) if text.get_text()}


def crowded(figure):
    """Tick labels in sight that lie over their neighbour."""
    found = []
    for axes in figure.axes:
        for axis, limits in (
            (axes.xaxis, axes.get_xlim()),
            (axes.yaxis, axes.get_ylim()),
        ):
            shown = [
                label for at, label in
                zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
                if min(limits) <= at <= max(limits)
            ]  # fmt: skip
            found += [
                (one.get_text(), other.get_text())
                for one, other in pairwise(
                    sorted(shown, key=lambda x: x.get_position())
                )
                if one.get_window_extent().overlaps(other.get_window_extent())
            ]
    return found


def unit_table(
    *, devices=("mt7621",), workloads=("tcp",), count=8, metric="throughput"
):
    rows = [
        {
            "question": f"{device}/{workload}/{metric}",
            "device": device,
            "workload": workload,
            "metric": metric,
            "variant": ("baseline", "patched", "patched", "baseline")[number % 4],
            "unit": f"run-{number:02}",
            "block": f"boot-{number // 4}",
            "order": number + 1,
            "timed": True,
            "value": 118e6 + 1e6 * number,
            "exposure": np.nan,
        }
        for device in devices
        for workload in workloads
        for number in range(count)
    ]
    return pd.DataFrame(rows)


def interval_table(*, runs=4, length=5):
    rows = [
        {
            "device": "mt7621",
            "workload": "tcp",
            "metric": "throughput",
            "variant": ("baseline", "patched")[run % 2],
            "name": f"run-{run}",
            "start_s": float(second),
            "end_s": second + 1.0,
            "value": 1e8 + 1e6 * run + second,
        }
        for run in range(runs)
        for second in range(length)
    ]
    return pd.DataFrame(rows)


def change_row(**changed):
    row = {
        "name": "throughput / tcp", "device": "mt7621", "role": "primary",
        "change": 5.9, "low": 5.6, "high": 6.1, "margin": 1.0, "noise": np.nan,
        "axis": "%", "verdict": "better",
    }  # fmt: skip
    return row | changed


def changes(*rows):
    return pd.DataFrame([change_row(**row) for row in rows])


def difference_table(symbols=("pskb_expand_head", "memcpy"), device="mt7621"):
    rows = [
        {
            "device": device,
            "workload": "tcp",
            "symbol": symbol,
            "inclusive_baseline": 0.2 + 0.01 * number,
            "inclusive_patched": 0.1,
            "self_baseline": 0.1,
            "self_patched": 0.1,
            "change": -0.1 - 0.01 * number,
        }
        for number, symbol in enumerate(symbols)
    ]
    return pd.DataFrame(rows)


def runs(table, unit="bit/s"):
    return figures.runs(table, label="Throughput", unit=unit)


def course(table):
    return figures.course(table, label="Throughput", unit="bit/s")


DRAWERS = [
    pytest.param(runs, unit_table(), id="runs"),
    pytest.param(course, interval_table(), id="course"),
    pytest.param(figures.forest, changes({}), id="forest"),
    pytest.param(figures.profile_difference, difference_table(), id="profile"),
]


# ---- every figure -------------------------------------------------------------------


@pytest.mark.parametrize(("draw", "table"), DRAWERS)
def test_a_figure_is_a_plot_and_its_svg_never_changes(draw, table):
    plot = draw(table)
    assert isinstance(plot, so.Plot)
    first, again = figures.to_svg(plot), figures.to_svg(draw(table))
    assert first == again
    assert first.startswith(b"<?xml")


@pytest.mark.parametrize(("draw", "table"), DRAWERS)
def test_an_empty_table_is_refused(draw, table):
    with pytest.raises(ValueError, match="nothing to draw: the table of"):
        draw(table.iloc[:0])


@pytest.mark.parametrize(("draw", "table"), DRAWERS)
def test_a_missing_column_is_named(draw, table):
    with pytest.raises(ValueError, match="the table has no column device"):
        draw(table.drop(columns="device"))


@pytest.mark.parametrize(("draw", "table"), DRAWERS)
def test_the_table_is_left_as_it_was(draw, table):
    before = table.copy(deep=True)
    figures.to_svg(draw(table))
    pd.testing.assert_frame_equal(table, before)


@pytest.mark.parametrize(("draw", "table"), DRAWERS)
def test_drawing_warns_of_nothing_and_leaves_no_open_figure(draw, table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figures.to_svg(draw(table))
    assert plt.get_fignums() == []


@pytest.mark.parametrize(("draw", "table"), DRAWERS)
def test_hostile_names_are_drawn_as_they_are(draw, table):
    names = {"device": HOSTILE, "symbol": HOSTILE, "name": HOSTILE, "workload": HOSTILE}
    hostile = table.iloc[:1].assign(**{k: v for k, v in names.items() if k in table})
    figure = drawn(draw(hostile))
    shown = [one for one in words(figure) if "frac" in one]
    assert shown
    assert all(r"\$\frac{a}{b}\$" in one for one in shown)
    figures.to_svg(draw(hostile))


def test_the_svg_is_the_same_in_another_process():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_figures as t\n"
        "sys.stdout.buffer.write(t.figures.to_svg(t.runs(t.unit_table())))"
    )
    folder = str(Path(__file__).parent)
    again = subprocess.run(
        [sys.executable, "-c", code, folder], capture_output=True, check=True
    )
    assert again.stdout == figures.to_svg(runs(unit_table()))


def test_the_svg_wastes_no_byte_on_indents_and_digits_nobody_sees():
    svg = figures.to_svg(runs(unit_table())).decode()
    shapes = " ".join(re.findall(r' d="([^"]*)"', svg))
    assert not re.search(r"\n | \n", svg)
    assert not re.search(r"\.\d{3}", shapes)
    assert "scale(0.015625)" in svg


def test_the_svg_names_no_date_and_no_program():
    svg = figures.to_svg(runs(unit_table()))
    assert b"<dc:date>" not in svg
    assert b"<dc:title>" not in svg
    assert b"<text" not in svg


def test_very_many_marks_become_pixels():
    few = figures.to_svg(course(interval_table(runs=2, length=20)))
    many = figures.to_svg(course(interval_table(runs=2, length=2100)))
    assert b"<image" not in few
    assert b"<image" in many


# ---- runs ---------------------------------------------------------------------------


def dots(figure):
    """All positions of dots, panel by panel."""
    return [
        np.concatenate([np.asarray(c.get_offsets()) for c in axes.collections])
        for axes in figure.axes
    ]


def test_every_unit_is_drawn_once_in_its_panel():
    table = unit_table(devices=("a", "b"), workloads=("tcp", "udp"))
    found = dots(drawn(runs(table)))
    assert [len(one) for one in found] == [8, 8, 8, 8]
    expected = [(row.order, row.value / 1e6) for row in table.head(8).itertuples()]
    np.testing.assert_allclose(sorted(map(tuple, found[0])), expected)


def test_names_that_are_cut_alike_keep_their_own_panels():
    devices = ("x" * 100 + "a" + "y" * 100, "x" * 100 + "b" + "y" * 100)
    assert [len(one) for one in dots(drawn(runs(unit_table(devices=devices))))] == [
        8,
        8,
    ]


def test_the_line_of_a_variant_is_its_median():
    table = unit_table()
    axes = drawn(runs(table)).axes[0]
    medians = table.groupby("variant")["value"].median() / 1e6
    lines = {line.get_color(): line.get_ydata()[0] for line in axes.lines}
    assert lines == {
        theme.VARIANT_COLORS["baseline"]: medians["baseline"],
        theme.VARIANT_COLORS["patched"]: medians["patched"],
    }


def test_every_second_block_has_a_band_between_its_neighbours():
    bands = drawn(runs(unit_table(count=12))).axes[0].patches
    assert [(b.get_x(), b.get_x() + b.get_width()) for b in bands] == [(4.5, 8.5)]


@pytest.mark.parametrize(
    "blocks",
    [
        pytest.param("", id="no block declared"),
        pytest.param(list("abcdefgh"), id="a block a unit"),
    ],
)
def test_no_band_is_drawn_where_blocks_say_nothing(blocks):
    figure = drawn(runs(unit_table().assign(block=blocks)))
    assert len(figure.axes[0].patches) == 0
    assert "block" not in words(figure)


def test_variants_differ_in_colour_marker_and_line():
    looks = theme.looks(["other", "third", "patched", "baseline"])
    assert list(looks) == ["baseline", "patched", "other", "third"]
    for field in ("color", "marker", "dashes"):
        assert len({str(getattr(look, field)) for look in looks.values()}) == 4


def test_the_first_named_variant_is_the_grey_one():
    looks = theme.looks(["new", "old"], ["old", "new"])
    assert looks["old"].color == theme.VARIANT_COLORS["baseline"]
    assert looks["new"].color == theme.VARIANT_COLORS["patched"]


def test_a_patched_variant_alone_stays_blue():
    assert theme.looks(["patched"])["patched"].color == theme.VARIANT_COLORS["patched"]


def test_a_leading_underscore_stays_in_the_key():
    table = unit_table().replace({"variant": {"patched": "_new"}})
    assert {"baseline", "_new"} <= words(drawn(runs(table)))


@pytest.mark.parametrize(
    ("metric", "unit", "value", "label"),
    [
        pytest.param("throughput", "bit/s", 118e6, "Q [Mbit/s]", id="rate"),
        pytest.param("rtt_mean", "s", 3e-5, "Q [µs]", id="time"),
        pytest.param("loss", "1", 0.02, "Q [%]", id="proportion"),
        pytest.param("softirqs", "1", 12345.0, "Q", id="bare count"),
    ],
)
def test_the_axis_has_a_unit_for_people(metric, unit, value, label):
    table = unit_table(metric=metric).assign(value=value)
    figure = drawn(figures.runs(table, label="Q", unit=unit))
    assert figure.axes[0].get_ylabel() == label


@pytest.mark.parametrize(
    ("timed", "label"),
    [(True, "Order in time"), (False, "Order of the files; that in time is not known")],
)
def test_the_axis_claims_an_order_in_time_only_where_it_is_known(timed, label):
    figure = drawn(runs(unit_table().assign(timed=timed)))
    assert {axes.get_xlabel() for axes in figure.axes} == {label}


def test_a_count_with_its_packets_is_read_per_hundred():
    table = unit_table(metric="retransmits").assign(value=0.01, exposure=1e6)
    assert theme.readable(table, "1") == (0.01, "per 100 packets")


def test_no_loss_at_all_has_no_tick_below_zero():
    figure = drawn(figures.runs(unit_table(metric="loss").assign(value=0.0),
                                label="Loss", unit="1"))  # fmt: skip
    axes = figure.axes[0]
    low, high = axes.get_ylim()
    assert next(tick for tick in axes.get_yticks() if low <= tick <= high) == 0


def test_two_metrics_do_not_share_an_axis():
    table = pd.concat([unit_table(), unit_table(metric="loss")])
    with pytest.raises(
        ValueError, match="one metric a figure; the table holds loss, throughput"
    ):
        runs(table)


def test_a_unit_that_stands_twice_is_refused():
    with pytest.raises(ValueError, match="'run-00' stands twice"):
        runs(pd.concat([unit_table(), unit_table()]))


@pytest.mark.parametrize(
    ("devices", "workloads", "count"),
    [
        pytest.param(("a",), ("tcp",), 12, id="smallest"),
        pytest.param(("a", "b"), ("s", "t", "u", "v"), 160, id="largest"),
        pytest.param(("a" * 60, "b" * 60), ("w" * 60,), 12, id="long names"),
    ],
)
def test_no_label_lies_over_another(devices, workloads, count):
    table = unit_table(devices=devices, workloads=workloads, count=count)
    figure = drawn(runs(table))
    assert not crowded(figure)
    titles = [axes.title.get_window_extent() for axes in figure.axes]
    titles += [axes._left_title.get_window_extent() for axes in figure.axes]
    wide = [box for box in titles if box.width > 1]
    assert not any(a.overlaps(b) for a, b in pairwise(wide))


# ---- course -------------------------------------------------------------------------


def test_each_run_is_one_line_in_order_of_time():
    axes = drawn(course(interval_table())).axes[0]
    thin = [line for line in axes.lines if line.get_linewidth() < 1]
    pieces = sum(int(np.isnan(line.get_ydata()).sum()) for line in thin)
    assert pieces == 4
    ordered = thin[0].get_xdata()[:5]
    np.testing.assert_allclose(ordered, [0.5, 1.5, 2.5, 3.5, 4.5])


def test_the_thick_line_is_the_median_of_the_runs():
    table = interval_table()
    axes = drawn(course(table)).axes[0]
    patched = table[table["variant"] == "patched"]
    expected = patched.groupby("start_s")["value"].median() / 1e6
    blue = theme.VARIANT_COLORS["patched"]
    thick = [
        line for line in axes.lines
        if line.get_color() == blue and line.get_linewidth() > 1
    ]  # fmt: skip
    np.testing.assert_allclose(thick[0].get_ydata(), expected)


# ---- forest -------------------------------------------------------------------------


def segments(axes):
    return [
        tuple(map(float, np.asarray(path)[:, 0]))
        for collection in axes.collections
        for path in getattr(collection, "get_segments", list)()
    ]


def test_intervals_end_where_the_table_says():
    table = changes({}, {"change": -3.0, "low": -4.5, "high": 2.0})
    axes = drawn(figures.forest(table)).axes[0]
    assert segments(axes) == [(5.6, 6.1), (-4.5, 2.0)]
    np.testing.assert_allclose(dots_of(axes), [5.9, -3.0])


def test_no_interval_flattens_the_others_but_one_alone_is_whole():
    wide = {"change": 1.0, "low": -50.0, "high": 52.0, "margin": 3.0}
    alone = drawn(figures.forest(changes(wide))).axes[0]
    assert segments(alone) == [(-50.0, 52.0)]
    beside = drawn(figures.forest(changes({}, wide))).axes[0]
    assert max(end for _, end in segments(beside)) < 30


def dots_of(axes):
    return [
        float(x) for c in axes.collections if not hasattr(c, "get_segments")
        for x, _ in np.asarray(c.get_offsets())
    ]  # fmt: skip


def test_the_first_row_stands_on_top_with_its_verdict():
    figure = drawn(figures.forest(changes({}, {"name": "x", "verdict": "worse"})))
    axes = figure.axes[0]
    assert axes.yaxis_inverted()
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert shown == ["throughput / tcp (primary)", "x (primary)"]
    assert {"better", "worse"} <= words(figure)


def test_the_margin_is_drawn_in_both_directions():
    axes = drawn(figures.forest(changes({"margin": 2.5}))).axes[0]
    band = axes.patches[0]
    assert (band.get_x(), band.get_x() + band.get_width()) == (-2.5, 2.5)


def test_what_code_placement_may_show_is_dashed_in_both_directions():
    figure = drawn(figures.forest(changes({}, {"name": "x", "noise": 7.0})))
    (axes,) = figure.axes
    dashed = [
        tuple(float(x) for x, _ in path)
        for one in axes.collections
        if one.get_linestyles()[0][1]
        for path in one.get_segments()
    ]
    assert dashed == [(-7.0, -7.0), (7.0, 7.0)]
    left, right = axes.get_xlim()
    assert left < -7 < 7 < right
    assert "code placement alone" in words(figure)
    assert "code placement alone" not in words(drawn(figures.forest(changes({}))))


def test_percent_points_and_large_changes_have_their_own_panels():
    table = changes(
        {},
        {"change": 1200.0, "low": 900.0, "high": 1500.0},
        {"change": 0.1, "low": 0.0, "high": 0.2, "axis": "pp"},
    )
    figure = drawn(figures.forest(table))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [
        "Change [%]", "Large change [%]", "Difference [percentage points]",
    ]  # fmt: skip
    assert figure.axes[0].get_xlim()[1] < 20


def test_an_infinite_end_is_an_arrow_at_the_edge():
    table = changes({"low": -np.inf, "high": np.inf})
    axes = drawn(figures.forest(table)).axes[0]
    arrows = {line.get_marker(): line.get_xdata()[0] for line in axes.lines[1:]}
    left, right = axes.get_xlim()
    assert arrows == {"<": left, ">": right}
    assert np.isfinite([left, right]).all()
    assert segments(axes) == [(left, right)]


@pytest.mark.parametrize("change", [np.nan, np.inf])
def test_a_row_without_a_change_keeps_its_verdict(change):
    row = dict.fromkeys(("change", "low", "high", "margin"), change)
    plot = figures.forest(changes({**row, "verdict": "not assessable"}))
    assert "not assessable" in words(drawn(plot))


def test_ticks_of_a_narrow_forest_have_room():
    large = {"change": 1234.0, "low": 900.0, "high": 1640.0, "name": "x" * 200}
    assert not crowded(drawn(figures.forest(changes({}, large))))


def test_devices_are_headings_of_their_rows():
    table = changes({"device": "a"}, {"device": "b"}, {"device": "a", "name": "x"})
    axes = drawn(figures.forest(table)).axes[0]
    at = {label.get_text(): label.get_position()[1] for label in axes.get_yticklabels()}
    assert (at["a"], at["x (primary)"], at["b"]) == (0, 2, 3)


# ---- profile ------------------------------------------------------------------------


def bars(axes):
    return [patch for patch in axes.patches if patch.get_height() < 1]


def test_bars_start_at_zero_and_end_at_the_share():
    axes = drawn(figures.profile_difference(difference_table())).axes[0]
    assert {bar.get_x() for bar in bars(axes)} == {0.0}
    ends = sorted(bar.get_width() for bar in bars(axes))
    np.testing.assert_allclose(ends, [10, 10, 20, 21])


def test_bars_of_a_symbol_do_not_overlap():
    axes = drawn(figures.profile_difference(difference_table())).axes[0]
    edges = sorted((b.get_y(), b.get_y() + b.get_height()) for b in bars(axes))
    assert all(low[1] <= high[0] + 1e-9 for low, high in pairwise(edges))


def test_the_first_symbols_are_shown_in_the_order_given():
    table = difference_table([f"symbol_{number}" for number in range(20)])
    axes = drawn(figures.profile_difference(table, top=3)).axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["symbol_0", "symbol_1", "symbol_2"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("_raw_spin_lock", "_raw_spin_lock", id="underscore"),
        pytest.param("a$b$c", r"a\$b\$c", id="dollars"),
        pytest.param("a\x1b[31m\n\u202eb", "a\ufffd[31m\ufffd\ufffdb", id="control"),
        pytest.param("\u4e2d", "\ufffd", id="no glyph"),
    ],
)
def test_names_are_made_safe_and_stay_readable(name, shown):
    axes = drawn(figures.profile_difference(difference_table([name]))).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [shown]


def test_symbols_that_look_alike_keep_their_own_bars():
    table = difference_table(["a\x01", "a\x02"])
    assert len(bars(drawn(figures.profile_difference(table)).axes[0])) == 4


def test_a_long_name_lies_within_the_picture():
    table = difference_table(["x" * 300, "y" * 64])
    figure = drawn(figures.profile_difference(table))
    left = min(one.get_window_extent().x0 for one in figure.axes[0].get_yticklabels())
    assert left >= 0


def test_a_font_of_the_system_with_the_same_name_changes_nothing():
    program = """
import dataclasses, sys
from matplotlib import font_manager
fonts = font_manager.fontManager.ttflist
if sys.argv[1:]:
    others = [one for one in fonts if one.name == "DejaVu Serif"]
    assert others
    fonts[:] = [dataclasses.replace(one, name="DejaVu Sans") for one in others]
import pandas as pd
from patchstudy import figures
columns = ["device", "workload", "metric", "variant", "block", "unit", "value"]
rows = [["d", "w", "throughput", v, "1", v, n] for n, v in enumerate("ab", start=1)]
table = pd.DataFrame(rows, columns=columns)
svg = figures.to_svg(figures.ecdf(table, label="Throughput", unit="bit/s", variants=()))
sys.stdout.buffer.write(svg)
"""
    plain, other = (
        subprocess.run(
            [sys.executable, "-c", program, *more], check=True, capture_output=True
        ).stdout
        for more in ([], ["other"])
    )
    assert b"DejaVuSans-" in plain
    assert other == plain
