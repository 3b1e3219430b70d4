"""Plans: how many, where to spend, in which order; never the power of the past."""

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from statsmodels.stats.power import TTestIndPower, TTestPower

from patchstudy import plan
from patchstudy.cli import main
from patchstudy.errors import StudyError
from patchstudy.plan import Given, Order, Shape, Wish
from patchstudy.report import planning
from patchstudy.stats import variance_components
from patchstudy.study import open_study
from patchstudy.turns import order_of

WISH = Wish(
    detect="",
    power=0.8,
    order=Order.ABBA,
    seed=7,
    blocks=None,
    boot_cost_s=60.0,
    run_cost_s=40.0,
)
SD = Given(metric="throughput", sd="1 %", boot_sd="", run_sd="")
GUARDED = """\
question = "Is it faster?"
unit = "run"
block = "boot"
[[metrics]]
name = "throughput"
role = "primary"
margin = "2 %"
[[metrics]]
name = "cpu_per_byte"
role = "guard"
margin = "5 %"
[[metrics]]
name = "rtt_mean"
role = "guard"
margin = "5 %"
[[metrics]]
name = "jitter"
role = "guard"
margin = "5 %"
required = false
[[metrics]]
name = "loss"
role = "guard"
margin = "0.1 pp"
"""
UNITS = {"cpu_per_byte": "s/byte", "rtt_mean": "s", "jitter": "s", "loss": "1"}


@pytest.fixture
def pilot(tmp_path):
    """Return a function that writes a pilot with spreads of our choice.

    Eight boots, in each two runs of both variants, normal on logs, seeded.
    """

    def write(
        design=GUARDED, *, boots=8, runs=2, variants=("baseline", "patched"), **sds
    ):
        folder = tmp_path / "driver" / "pilot"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "study.toml").write_text(design, encoding="utf-8")
        random = np.random.default_rng(1)
        lines = ["metric,unit,value,device,workload,variant,boot,run"]
        for metric, sd in (sds or {"throughput": 0.01}).items():
            unit = UNITS.get(metric, "bit/s")
            for boot in range(1, boots + 1):
                for variant in variants:
                    level = 1e6 if unit == "bit/s" else 1e-3
                    shift = sd * random.normal()
                    for run in range(1, runs + 1):
                        value = level * math.exp(shift + sd * random.normal())
                        cells = ("router", "tcp", variant, boot, run)
                        row = (metric, unit, repr(float(value)), *cells)
                        lines.append(",".join(map(str, row)))
        text = "\n".join(lines) + "\n"
        (folder / "measurements.csv").write_text(text, encoding="utf-8")
        return folder

    return write


def planned(folder, **wish):
    (one,) = plan.of_pilot(open_study(folder), replace(WISH, **wish)).plans
    return one


def from_spread(given=SD, *, detect="2 %", **wish):
    wish = replace(WISH, detect=detect, **wish)
    return plan.make([], [], given, wish)


def need(one, metric):
    (found,) = (need for need in one.needs if need.metric == metric)
    return found


# ---- how many -----------------------------------------------------------------------

TABLE = {  # docs: change in percent that n units of each variant show, by sd in percent
    0.5: [1.5, 1.2, 1.0, 0.75, 0.66, 0.45],
    1: [3.1, 2.4, 2.0, 1.5, 1.3, 0.9],
    2: [6.1, 4.8, 4.0, 3.0, 2.6, 1.8],
    3: [9.2, 7.1, 6.1, 4.5, 4.0, 2.7],
    5: [15.4, 11.9, 10.1, 7.5, 6.6, 4.6],
    10: [30.7, 23.8, 20.2, 15.1, 13.2, 9.1],
}


@pytest.mark.parametrize("sd", TABLE)
def test_a_given_spread_shows_what_the_table_says(sd):
    (one,) = from_spread(replace(SD, sd=f"{sd} %")).plans
    (asked,) = one.needs
    got = [100 * asked.shown_by(n, asked.sd, paired=False) for n in planning.LADDER]
    assert got == pytest.approx(TABLE[sd], abs=0.055)  # on the scale of the logs


@pytest.mark.parametrize("change", ["0.8 %", "2 %", "5 %"])
def test_the_need_of_a_given_spread_is_that_of_statsmodels(change):
    (one,) = from_spread(detect=change).plans
    size = math.log1p(float(change.split()[0]) / 100) / 0.01
    want = TTestIndPower().solve_power(size, alpha=0.05, power=0.8)
    assert need(one, "throughput").needed == math.ceil(want)


def test_the_need_of_blocks_is_that_of_statsmodels(pilot):
    asked = need(planned(pilot(throughput=0.02)), "throughput")
    size = math.log(1.02) / asked.sd
    want = TTestPower().solve_power(size, alpha=0.05, power=0.8)
    assert (asked.paired, asked.n) == (True, 8)
    assert asked.needed == math.ceil(want)


def test_the_need_of_unpaired_runs_is_that_of_statsmodels(pilot):
    folder = pilot(GUARDED.replace('block = "boot"\n', ""), boots=1, runs=9)
    asked = need(planned(folder), "throughput")
    want = TTestIndPower().solve_power(math.log(1.02) / asked.sd, None, 0.05, 0.8)
    assert (asked.paired, asked.n) == (False, 9)
    assert asked.needed == math.ceil(want)


def test_the_detectable_change_is_found_at_the_n_that_is_there(pilot):
    asked = need(planned(pilot(throughput=0.02)), "throughput")
    power = TTestPower().power(asked.detectable / asked.sd, asked.n, 0.05)
    assert power == pytest.approx(0.8, abs=1e-6)


def test_a_guard_is_planned_by_its_one_sided_bound(pilot):
    asked = need(planned(pilot(throughput=0.01, rtt_mean=0.05)), "rtt_mean")
    size = math.log(1.05) / asked.sd
    want = TTestPower().solve_power(size, None, 0.05, 0.8, alternative="larger")
    assert asked.needed == math.ceil(want)


def test_no_change_is_planned_by_two_one_sided_tests(pilot):
    same = GUARDED.replace('margin = "2 %"', 'margin = "2 %"\nexpect = "same"')
    asked = need(planned(pilot(same, throughput=0.01)), "throughput")
    n, scale = asked.needed, asked.sd / math.sqrt(asked.needed)
    random = np.random.default_rng(3)
    error = random.normal(0, scale, 20_000)
    spread = scale * np.sqrt(random.chisquare(n - 1, 20_000) / (n - 1))
    reach = special.stdtrit(n - 1, 0.95) * spread
    inside = np.abs(error) + reach < math.log(1.02)
    assert 0.8 - 0.01 < inside.mean() < 0.9


def test_a_guard_of_the_documentation_is_shown_safe_as_often_as_it_says():
    # n = 5, sd 1 %, margin 2 %: 89 % (STATISTICS 3.13)
    (one,) = from_spread(power=0.885).plans
    asked = replace(one.needs[0], alpha=0.10)
    assert asked.units_for(0.01, paired=False) == 5


def test_the_noisiest_required_guard_decides_and_is_named(pilot, capsys):
    folder = pilot(
        throughput=0.002, cpu_per_byte=0.01, rtt_mean=0.08, jitter=0.4, loss=0.1
    )
    one = planned(folder)
    assert one.guard.metric == one.decides.metric == "rtt_mean"
    assert one.n == one.needed == one.guard.planned > plan.DEFAULT_UNITS
    assert "jitter" not in {need.metric for need in one.needs}
    assert main(["plan", str(folder)]) == 0
    assert "Noisiest required guard: rtt_mean, tcp" in capsys.readouterr().out


def test_the_noisiest_guard_of_a_shipped_study_is_named(data):
    one = planned(data / "veth" / "gro", detect="50 %")
    assert one.guard.metric == one.decides.metric == "transaction_rate"


def test_a_guard_that_was_not_measured_is_listed(pilot):
    design = GUARDED.replace('margin = "0.1 pp"', 'workload = "udp"')
    one = planned(pilot(design, throughput=0.01, rtt_mean=0.01))
    problems = {need.metric: need.problem for need in one.needs}
    assert problems["rtt_mean"] == ""
    assert set(problems.values()) <= {"", "unmeasured"}


def test_the_plan_is_at_least_the_default(pilot):
    one = planned(pilot(throughput=0.0005))
    assert (one.needed, one.n, one.shape.units) == (2, 8, 2)


def test_so_many_blocks_as_asked_and_what_they_show(pilot, capsys):
    folder = pilot(throughput=0.05)
    one = planned(folder, blocks=3)
    assert (one.n, one.shape.blocks) == (3, 3)
    assert need(one, "throughput").shows > math.log(1.02)
    assert main(["plan", str(folder), "--blocks", "3"]) == 0
    text = capsys.readouterr().out
    assert "too few, the margins need" in text
    assert "Fewer than 5 boots" in text


def test_a_hopeless_margin_has_no_schedule(pilot, capsys):
    folder = pilot(throughput=0.2)
    assert main(["plan", str(folder), "--detect", "0.01 %"]) == 0
    text = capsys.readouterr().out
    assert "No plan: not even 10000 would do" in text
    assert "Schedule" not in text


def test_the_baseline_alone_is_a_pilot(pilot):
    folder = pilot(variants=("baseline",))
    asked = need(planned(folder), "throughput")
    text = (folder / "measurements.csv").read_text(encoding="utf-8")
    logs = [math.log(float(row["value"])) for row in csv.DictReader(io.StringIO(text))]
    assert (asked.paired, asked.n, asked.df) == (False, 16, 15)
    assert asked.spread.own == 0  # nothing is known of what blocks would take away
    assert asked.sd == pytest.approx(np.std(logs, ddof=1))


@settings(max_examples=25, deadline=None)
@given(
    st.floats(0.1, 5).map(lambda x: round(x, 3)),
    st.sampled_from(list(Order)),
    st.booleans(),
)
def test_doubling_the_spread_never_lowers_n(sd, order, split):
    def given_(sd):
        if split:
            return replace(SD, sd="", boot_sd=f"{sd} %", run_sd=f"{sd} %")
        return replace(SD, sd=f"{sd} %")

    once, twice = (
        from_spread(given_(size), detect="3 %", order=order).plans[0]
        for size in (sd, 2 * sd)
    )
    assert once.needs[0].needed <= twice.needs[0].needed
    assert len(once.slots) <= len(twice.slots)


# ---- boots or runs ------------------------------------------------------------------


def test_the_spread_is_split_as_for_balanced_boots(pilot):
    design = GUARDED.replace('unit = "run"\nblock = "boot"', 'unit = "boot"')
    folder = pilot(design, boots=12, runs=3)
    text = (folder / "measurements.csv").read_text()
    lines = [line.split(",") for line in text.splitlines()]
    for cells in lines[1:]:
        cells[6] = f"{cells[5]}{cells[6]}"  # every boot runs one variant
    text = "\n".join(",".join(cells) for cells in lines) + "\n"
    (folder / "measurements.csv").write_text(text)
    one = planned(folder)
    spread = need(one, "throughput").spread
    logs = np.log([float(cells[2]) for cells in lines[1:]]).reshape(12, 2, 3)
    parts = [variance_components(logs[:, arm]).components for arm in (0, 1)]
    assert spread.told
    assert one.unit == "boot"
    assert (spread.own, spread.above) == pytest.approx(np.mean(parts, axis=0))


def test_runs_in_a_boot_are_those_that_cost_least():
    given_ = replace(SD, sd="", boot_sd="1 %", run_sd="2 %")
    (one,) = from_spread(given_, boot_cost_s=300.0, run_cost_s=30.0).plans
    assert one.optimum == math.ceil(math.sqrt(300 / 30 * 4))
    assert one.unit == "boot"
    assert 1 < one.shape.runs <= one.optimum


def test_boots_that_run_one_variant_have_their_own_number():
    given_ = replace(SD, sd="", boot_sd="2 %", run_sd="1 %")
    (one,) = from_spread(given_).plans
    boots = {}
    for slot in one.slots:
        boots.setdefault(slot.folder.split("/")[2], set()).add(slot.variant)
    assert len(boots) == one.shape.blocks * one.shape.units * 2
    assert all(len(variants) == 1 for variants in boots.values())
    assert one.n >= 5


def test_one_run_in_a_block_cannot_tell_where_the_noise_comes_from(pilot, capsys):
    folder = pilot(runs=1)
    assert not need(planned(folder), "throughput").spread.told
    assert main(["plan", str(folder)]) == 0
    assert "cannot say which of them the noise" in " ".join(
        capsys.readouterr().out.split()
    )


# ---- the order ----------------------------------------------------------------------


def slots(order, seed, *, blocks=6, units=2):
    design = from_spread().design
    shape = Shape(unit="run", blocks=blocks, units=units, runs=1)
    return plan.schedule(design, "router", shape, order=order, seed=seed)


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(list(Order)),
    st.integers(0, 2**40),
    st.integers(1, 12),
    st.sampled_from([2, 4]),
)
def test_every_block_holds_every_variant_equally(order, seed, blocks, units):
    found = slots(order, seed, blocks=blocks, units=units)
    for block in {slot.block for slot in found}:
        turn = [slot.variant for slot in found if slot.block == block]
        assert turn.count("baseline") == turn.count("patched") == units
        assert order is Order.RANDOM or turn == turn[::-1]
    assert len({slot.folder for slot in found}) == len(found)
    assert [slot.position for slot in found] == list(range(1, len(found) + 1))


def test_abba_and_baab_take_turns():
    found = slots(Order.ABBA, 1)
    first = [slot.variant for slot in found[::4]]
    assert first in (["baseline", "patched"] * 3, ["patched", "baseline"] * 3)
    variants, blocks = zip(*((slot.variant, slot.block) for slot in found), strict=True)
    assert order_of(variants, blocks, "baseline") == "ABBA"


@pytest.mark.parametrize("order", list(Order))
def test_a_seed_fixes_the_order_and_another_one_changes_it(order):
    assert slots(order, 4) == slots(order, 4)
    assert len({slots(order, seed) for seed in range(8)}) > 1


def test_three_variants_take_turns_as_well(pilot):
    design = GUARDED.replace("unit =", 'patched = ["patched", "placebo"]\nunit =', 1)
    one = planned(pilot(design, variants=("baseline", "patched", "placebo")))
    turn = [slot.variant for slot in one.slots[:6]]
    assert turn == turn[::-1]
    assert {slot.variant for slot in one.slots[::6]} == {
        "baseline", "patched", "placebo",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("layout", "folder"),
    [
        ("{device}/{variant}/boot-{boot}/{purpose}-{run}/{workload}.{rest}",
         "router/patched/boot-01/run-01"),
        ("{variant}_{device}_{run}.json", "patched_router_01.json"),
        ("{device}/{variant}/block-{block}/{run}.{workload}.{rest}",
         "router/patched/block-01/01.{workload}.{rest}"),
    ],
)  # fmt: skip
def test_files_go_where_the_layout_says(pilot, layout, folder):
    one = planned(pilot(f'layout = "{layout}"\n{GUARDED}'), seed=2)
    folders = [slot.folder for slot in one.slots if slot.variant == "patched"]
    assert folders[0] == folder
    assert len(set(folders)) == len(folders)


def test_the_planned_files_are_a_study_that_is_found_balanced(pilot, tmp_path):
    found = planned(pilot(), order=Order.RANDOM)
    folder = tmp_path / "new"
    for slot in found.slots:
        (folder / slot.folder).mkdir(parents=True)
        said = {"position": slot.position, "started_at": "", "purpose": "measurement"}
        (folder / slot.folder / "tcp.run.json").write_text(json.dumps(said))
    (folder / "study.toml").write_text(GUARDED)
    runs = open_study(folder).runs
    assert len(runs) == len(found.slots)
    assert {run.boot for run in runs} == {slot.block for slot in found.slots}


# ---- what is printed ----------------------------------------------------------------


def printed(capsys, *words):
    assert main(["plan", *map(str, words)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("form", ["text", "csv", "json"])
def test_same_seed_same_bytes(pilot, capsys, form):
    folder = pilot(throughput=0.01, rtt_mean=0.02)
    words = (folder, "--seed", "3", "--format", form, "--order", "random")
    assert printed(capsys, *words) == printed(capsys, *words)
    other = (*words[:2], "4", *words[3:])
    assert printed(capsys, *words) != printed(capsys, *other)


def test_text_is_narrow_ascii_and_silent_about_past_power(pilot, capsys):
    text = printed(capsys, pilot(throughput=0.01, rtt_mean=0.02))
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 72
    assert "observed" not in text.lower()


def test_csv_holds_the_schedule(pilot, capsys):
    folder = pilot()
    rows = list(csv.DictReader(io.StringIO(printed(capsys, folder, "--format", "csv"))))
    assert list(rows[0]) == ["device", *planning._SLOT]
    assert [int(row["position"]) for row in rows] == list(range(1, 33))


def test_json_and_the_stored_plan_are_the_same(pilot, capsys):
    folder = pilot(throughput=0.01, rtt_mean=0.02)
    path = folder / "plan.json"
    text = printed(capsys, folder, "--format", "json", "--store", path)
    assert path.read_text(encoding="utf-8") == text
    content = json.loads(text)
    assert content["study_sha256"] == open_study(folder).design.digest
    assert content["margins"][0]["margin"] == "2 %"
    assert content["plans"][0]["n"] == 8
    assert len(content["plans"][0]["slots"]) == 32


def test_bare_files_are_a_pilot(data, capsys, monkeypatch):
    monkeypatch.chdir(data / "veth" / "gro")
    cell = Path("x86-vm-6.18")
    sets = [sorted(cell.glob(f"{v}/*/run-*/tcp.iperf3.json"))[:4]
            for v in ("baseline", "patched")]  # fmt: skip
    words = (*sets[0], "--with", *sets[1], "--detect", "50 %")
    text = printed(capsys, *words)
    assert "runs of each variant" in text
    assert "the pilot has no blocks with both variants" in " ".join(text.split())


def test_a_study_without_runs_is_planned_from_a_given_spread(pilot, capsys):
    folder = pilot()
    (folder / "measurements.csv").unlink()
    text = printed(capsys, folder, "--sd", "1 %")
    assert "from a given spread" in text
    assert "Guards are not planned for" in text


def test_a_spread_of_loss_is_in_points(capsys):
    words = ("--metric", "loss", "--sd", "0.1 pp", "--detect", "0.2 pp")
    assert "0.2 pp" in printed(capsys, *words)


# ---- what cannot be planned ---------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "nothing to plan from; give a STUDY"),
        (("nowhere",), "nowhere: no such folder"),
        (("a", "b"), "2 studies given"),
        (("a.json", "--with", "b.json", "--sd", "1 %"), "--with: needs the baseline's"),
        (("--sd", "1 %", "--detect", "2"), "--detect: '2' is no margin; write it as"),
        (("--sd", "0 %"), "--sd: '0 %' is no spread above 0"),
        (("--sd", "1 %", "--run-sd", "1 %"), "give either --sd, or"),
        (("--boot-sd", "1 %"), "--boot-sd, --run-sd: give both"),
        (("--sd", "1 %", "--metric", "speed"), "--metric: unknown metric 'speed'"),
        (("--sd", "1 %", "--metric", "loss"), "in the unit of loss"),
        (("--sd", "1 us", "--metric", "jitter"), "give it in percent"),
        (("--sd", "1 %", "--power", "80"), "--power: 80 given"),
        (("--sd", "1 %", "--blocks", "1"), "--blocks: 1 given; a spread needs"),
        (("--sd", "1 %", "--run-cost", "0"), "give seconds above 0"),
        (("--sd", "1 %", "--run-cost", "nan"), "give seconds above 0, at most"),
        (("--sd", "1 %", "--boot-cost", "1e308"), "give seconds above 0, at most"),
        (("--sd", "1 %", "--blocks", "9" * 30), "--blocks: give at most 100000"),
        (("--sd", "1 %", "--store", "nowhere/plan.json"), "--store: nowhere/plan.json"),
    ],
)  # fmt: skip
def test_an_impossible_wish_is_one_line(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["plan", *words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("patchstudy: ")
    assert message in told.err
    assert told.err.count("\n") == 1


def test_a_pilot_without_spread_says_what_that_means(pilot):
    with pytest.raises(StudyError, match=r"no spread.*says nothing about noise"):
        planned(pilot(throughput=0.0))


def test_one_unit_of_each_variant_has_no_spread(pilot):
    with pytest.raises(StudyError, match="a spread needs two units of each variant"):
        planned(pilot(boots=1, runs=1))


def test_detect_must_fit_the_primary_metric(pilot):
    with pytest.raises(StudyError, match="--detect: '2 us' does not fit throughput"):
        planned(pilot(), detect="2 us")
