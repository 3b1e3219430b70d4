"""A spread that another study of the same device lends, and what never comes of it."""

import json
import math
import shutil
import statistics

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from patchstudy import banks, checks, noise, stats
from patchstudy.cli import main
from patchstudy.decisions import Decision
from patchstudy.errors import StudyError
from patchstudy.findings import assess
from patchstudy.report import fresh, results
from patchstudy.report.noise import margins
from patchstudy.study import hide, open_study
from patchstudy.verdicts import ONE_BOOT_EACH, SUGGESTIVE, Guarded, Verdict

DESIGN = """\
question = "Is it faster?"
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
margin = "2 %"
{more}
"""
LENDS = DESIGN.format(more='expect = "same"')
BORROWS = DESIGN.format(more='[noise]\nstudy = "../same"')
#: Mbit/s of the baseline, by boot.
BOOTS = ([100.0, 100.4], [101.2, 101.0], [99.1, 99.5], [100.3, 100.7])


def rows_of(variant, boots, **factors):
    """Return rows of runs, boot after boot."""
    shared = {"metric": "throughput", "unit": "Mbit/s", "device": "router"}
    shared |= {"workload": "tcp", "variant": variant, **factors}
    return [
        {**shared, "boot": f"{variant}-{boot}", "run": run, "value": repr(value)}
        for boot, values in enumerate(boots, start=1)
        for run, value in enumerate(values, start=1)
    ]


@pytest.fixture
def lender(write_study):
    """Return a function that writes the study that lends."""

    def of(boots=BOOTS, design=LENDS, name="a/same", **factors):
        rows = [*rows_of("baseline", boots, **factors)]
        return write_study(
            design, [*rows, *rows_of("patched", boots, **factors)], name=name
        )

    return of


@pytest.fixture
def borrower(write_study, lender):
    """Return a function that assesses a study that borrows from another."""

    def of(base, patched, *, design=BORROWS, **lent):
        lender(**lent)
        rows = [*rows_of("baseline", base), *rows_of("patched", patched)]
        return assess(open_study(write_study(design, rows, name="a/patch")))

    return of


def logs_of(boots):
    return [[math.log(value) for value in one] for one in boots]


# ---- the spread ---------------------------------------------------------------------


def test_the_spread_is_that_of_boot_means_and_of_runs_in_a_boot(lender):
    material = checks.material(open_study(lender()))
    (lent,) = noise.spreads("a/same", material.runs, material.asked, "baseline")
    logs = logs_of(BOOTS)
    means = [statistics.fmean(one) for one in logs]
    assert (lent.level, lent.groups, lent.runs, lent.df) == ("boot", 4, 2, 3)
    assert lent.between == pytest.approx(statistics.stdev(means))
    within = statistics.fmean(statistics.variance(one) for one in logs)
    assert lent.within == pytest.approx(math.sqrt(within))


def test_the_spread_of_one_run_is_that_of_the_variance_components(lender):
    """The published formulas (oracle 06), where no component is negative."""
    material = checks.material(open_study(lender()))
    (lent,) = noise.spreads("a/same", material.runs, material.asked, "baseline")
    split = stats.variance_components(logs_of(BOOTS))
    assert not any(split.clamped)
    assert lent.sd_of(1) == pytest.approx(math.sqrt(sum(split.components)))
    assert lent.sd_of(2) == pytest.approx(lent.between)
    assert lent.sd_of(50) == lent.between  # more runs than were lent prove no less


def test_boots_of_unequal_size_count_alike(lender):
    boots = ([100.0], [101.0, 101.5, 102.0], [99.0, 99.5])
    material = checks.material(open_study(lender(boots)))
    (lent,) = noise.spreads("a/same", material.runs, material.asked, "baseline")
    logs = logs_of(boots)
    assert lent.runs == pytest.approx(3 / (1 + 1 / 3 + 1 / 2))
    means = [statistics.fmean(one) for one in logs]
    assert lent.between == pytest.approx(statistics.stdev(means))
    inside = sum(statistics.variance(one) * (len(one) - 1) for one in logs[1:]) / 3
    assert lent.within == pytest.approx(math.sqrt(inside))


def test_without_repeated_boots_runs_are_what_was_repeated(lender):
    material = checks.material(open_study(lender([[100.0, 101.0, 99.0, 100.5]])))
    (lent,) = noise.spreads("a/same", material.runs, material.asked, "baseline")
    assert (lent.level, lent.groups, lent.within) == ("run", 4, 0.0)
    assert lent.sd_of(1) == lent.sd_of(4) == lent.between


@pytest.mark.parametrize(
    ("boots", "more"),
    [
        pytest.param([[100.0], [101.0]], {}, id="two boots"),
        pytest.param([*BOOTS, [0.0]], {}, id="a zero has no logarithm"),
    ],
)
def test_what_tells_too_little_lends_nothing(lender, boots, more):
    material = checks.material(open_study(lender(boots, **more)))
    found = noise.spreads("a/same", material.runs, material.asked, "baseline")
    assert list(found) == []


# ---- single units (STATISTICS 3.6) --------------------------------------------------


def test_single_runs_get_an_interval_that_is_a_hint_at_most(borrower):
    found = borrower([[100.0]], [[106.0]])
    (one,) = found.findings
    split = stats.variance_components(logs_of(BOOTS))
    error = math.sqrt(2 * sum(split.components))
    reach = float(scipy_stats.t.ppf(0.975, 3)) * error
    change = one.comparison.borrowed.change
    assert change.value == pytest.approx(0.06)
    assert change.low == pytest.approx(1.06 * math.exp(-reach) - 1)
    assert change.high == pytest.approx(1.06 * math.exp(reach) - 1)
    assert one.verdict is Verdict.NOT_ASSESSABLE
    assert one.qualifiers == ("too few units", SUGGESTIVE)
    assert found.decision is Decision.NOT_YET
    assert one.comparison.change is None
    assert "a spread borrowed from a/same (sd 0.773 % of 4 boots)" in one.sentence
    assert "suggestive at most" in one.sentence


def test_a_small_change_of_single_runs_is_not_even_a_hint(borrower):
    (one,) = borrower([[100.0]], [[101.0]]).findings
    assert one.qualifiers == ("too few units",)
    assert "it shows no change" in one.sentence


def test_many_runs_in_one_boot_do_not_narrow_what_is_borrowed(borrower):
    found = borrower([[100.0]], [[106.0, 106.0, 106.0]])
    (one,) = found.findings
    sd = one.comparison.borrowed.sd
    assert sd == pytest.approx(one.comparison.borrowed.lent.sd_of(1))


def test_a_spread_of_one_boot_says_so(borrower):
    found = borrower([[100.0]], [[106.0]], boots=[[100.0, 101.0, 99.0, 100.5]])
    (one,) = found.findings
    assert "of 4 runs, boot to boot not measured" in one.sentence


@pytest.mark.parametrize(
    "other", [{"device": "switch"}, {"workload": "udp"}], ids=["device", "workload"]
)
def test_nothing_is_borrowed_from_another_place(borrower, other):
    found = borrower([[100.0]], [[106.0]], **other)
    (one,) = found.findings
    assert one.comparison.borrowed is None
    (note,) = margins(found)
    assert "tells the noise of nothing that this study judges" in note.text


def test_nothing_is_borrowed_for_what_only_its_own_size_tells(write_study, lender):
    design = DESIGN.replace("throughput", "retransmits").replace("2 %", "0.1 pp")
    counted = {"metric": "retransmits", "unit": "1"}
    lender(design=design.format(more='expect = "same"'), **counted)
    rows = [*rows_of("baseline", [[5.0]], **counted),
            *rows_of("patched", [[9.0]], **counted)]  # fmt: skip
    design = design.format(more='[noise]\nstudy = "../same"')
    (one,) = assess(open_study(write_study(design, rows, name="a/patch"))).findings
    assert one.comparison.borrowed is None


def test_a_flat_spread_is_never_narrower_than_the_last_digit():
    lent = noise.Lent(
        study="a/same", series=None, scale=noise.Scale.RATIO, level="boot", groups=4,
        runs=1.0, between=0.0, within=0.0,
    )  # fmt: skip
    found = noise.without_spread(0.1, lent, runs=1.0, floor=0.01, confidence=0.95)
    reach = float(scipy_stats.t.ppf(0.975, 3)) * math.sqrt(2) * 0.01
    assert found.change.low == pytest.approx(math.expm1(0.1 - reach))
    assert noise.without_spread(0.1, lent, runs=1.0, floor=0, confidence=0.95) is None


# ---- one boot of each (STATISTICS 3.7) ----------------------------------------------

ONE_BOOT = ([[100.0, 100.2, 99.9, 100.1]], [[103.0, 103.2, 102.9, 103.1]])


def test_one_boot_of_each_gets_the_spread_of_boots_added(borrower):
    found = borrower(*ONE_BOOT)
    (one,) = found.findings
    base, new = (np.log(side[0]) for side in ONE_BOOT)
    own = base.var(ddof=1) / 4 + new.var(ddof=1) / 4
    means = [statistics.fmean(boot) for boot in logs_of(BOOTS)]
    error = math.sqrt(own + 2 * statistics.variance(means))
    reach = float(scipy_stats.t.ppf(0.975, 3)) * error
    borrowed = one.comparison.borrowed
    value = new.mean() - base.mean()
    assert borrowed.boots
    assert borrowed.change.low == pytest.approx(math.expm1(value - reach))
    assert borrowed.change.high == pytest.approx(math.expm1(value + reach))


def test_one_boot_of_each_never_decides(borrower):
    found = borrower([[100.0, 100.2, 99.9, 100.1]], [[120.0, 120.2, 119.9, 120.1]])
    (one,) = found.findings
    assert one.verdict is Verdict.NOT_ASSESSABLE or ONE_BOOT_EACH in one.qualifiers
    assert one.comparison.borrowed.shows
    assert found.decision is Decision.NOT_YET


def in_turn(rows):
    """Give rows of two variants positions in which they took turns."""
    half = len(rows) // 2
    for place, (base, new) in enumerate(zip(rows[:half], rows[half:], strict=True)):
        first, second = (base, new) if place % 2 else (new, base)
        first["position"], second["position"] = 2 * place + 1, 2 * place + 2
    return rows


@pytest.fixture
def one_boot_each(write_study, lender):
    """Return a function that assesses a study with one boot of each, in turn."""

    def of(patched, design=BORROWS, *, shared=False):
        lender()
        rows = rows_of("baseline", ONE_BOOT[0]) + rows_of("patched", [patched])
        for row in rows if shared else ():
            row["boot"] = "1"
        return assess(open_study(write_study(design, in_turn(rows), name="a/patch")))

    return of


def test_a_gain_within_one_boot_of_each_is_told_and_not_accepted(one_boot_each):
    found = one_boot_each([103.0, 103.2, 102.9, 103.1])
    (one,) = found.findings
    assert one.verdict is Verdict.BETTER
    assert ONE_BOOT_EACH in one.qualifiers
    assert found.decision is Decision.NOT_YET
    assert "boot to boot not measured" in one.sentence
    assert "two boots of one kernel may differ as much" in one.sentence


def test_a_loss_within_one_boot_of_each_refutes_nothing(one_boot_each):
    found = one_boot_each([97.0, 97.2, 96.9, 97.1])
    assert found.findings[0].verdict is Verdict.WORSE
    assert found.decision is Decision.NOT_YET


def test_a_guard_is_not_broken_within_one_boot_of_each(one_boot_each):
    design = BORROWS.replace('role = "primary"', 'role = "guard"')
    design += '[[metrics]]\nname = "cpu_busy"\nrole = "primary"\n'
    found = one_boot_each([90.0, 90.2, 89.9, 90.1], design)
    guard = next(one for one in found.findings if one.guarded)
    assert guard.guarded is Guarded.UNRESOLVED
    assert "boots may differ as much" in guard.sentence
    assert found.decision is Decision.NOT_YET


def test_a_boot_that_both_variants_shared_needs_no_other(one_boot_each):
    found = one_boot_each([103.0, 103.2, 102.9, 103.1], shared=True)
    (one,) = found.findings
    assert one.comparison.borrowed is None
    assert "within one boot" in one.qualifiers
    assert found.decision is Decision.ACCEPT


# ---- margins (STATISTICS 3.4, 3.16) -------------------------------------------------


def test_the_noise_is_told_for_as_many_units_as_the_study_has():
    shown = noise.Noise(
        study="a/same", series=None, scale=noise.Scale.RATIO, half_width=0.01,
        sd=0.01, units=10.0, paired=True, alpha=0.05,
    )  # fmt: skip
    fewer = shown.with_units(4.0)
    t = scipy_stats.t.ppf
    wider = t(0.975, 3) / 2 / (t(0.975, 9) / math.sqrt(10))
    assert fewer.half_width == pytest.approx(0.01 * wider)
    assert fewer.least_margin == pytest.approx(0.02 * wider)
    assert shown.with_units(10.0) == shown


def test_the_shipped_study_says_which_margins_can_be_tested(assessed):
    found = assessed("qmi_wwan/qmap-headroom")
    told = {x.comparison.question.planned.metric.name: x for x in found.tested}
    assert set(told) == {"throughput", "cpu_per_byte", "retransmits"}
    assert all(one.can for one in told.values())
    assert told["throughput"].noise.study == "qmi_wwan/same-module"
    assert told["throughput"].noise.units == 11
    (table,) = margins(found)
    assert [row[-1] for row in table.rows] == ["yes", "yes", "yes"]
    content = results.results(found)["noise"]
    assert content["study"] == "qmi_wwan/same-module"
    assert len(content["margins"]) == 3
    other = found.study.noise
    assert content["study_sha256"] == other.design.digest


def test_a_margin_below_the_noise_is_told_to_be_untestable(write_study, turns, lender):
    rng = np.random.default_rng(3)
    noisy = [[float(100 * math.exp(x))] for x in rng.normal(0, 0.05, 6)]
    rows = turns(*([one[0] for one in noisy] for _ in range(2)))
    write_study(LENDS, rows, name="a/same")
    steady = [100.0, 100.2, 99.9, 100.1, 99.8, 100.0]
    study = open_study(write_study(BORROWS, turns(steady, steady), name="a/patch"))
    found = assess(study)
    (one,) = found.findings
    caveat = next(x for x in one.comparison.caveats if x.code == "aa-noise")
    assert "one build differs by from itself in a/same" in caveat.text
    (tested,) = found.tested
    assert not tested.can


def test_a_study_with_a_claim_of_no_change_tells_its_guards_noise_too(assessed):
    found = assessed("qmi_wwan/same-module")
    design = found.study.design
    compared = [one.comparison for one in found.findings]
    told = {x.series.metric for x in banks.noises("a", compared, design)}
    assert told == {"throughput", "cpu_per_byte", "retransmits"}


# ---- the other study is an input ----------------------------------------------------


@pytest.fixture
def copied(data, tmp_path):
    """Return a copy of two studies, of which one names the other for its noise."""
    for name in ("rx-prefetch", "same-module"):
        shutil.copytree(data / "qmi_wwan" / name, tmp_path / "data/qmi_wwan" / name)
    folder = tmp_path / "data/qmi_wwan/rx-prefetch"
    with (folder / "study.toml").open("a") as file:
        file.write('\n[noise]\nstudy = "../same-module"\n')
    return folder


def test_its_raw_files_are_inputs_of_the_report(copied):
    study = open_study(copied)
    lent = [path for path in study.files if path.startswith("../same-module/")]
    assert len(lent) == len(study.noise.files) > 0
    told = results.results(assess(study))["provenance"]["files"]
    assert set(lent) <= set(told)


def test_a_change_of_its_files_makes_the_report_old(copied):
    _, before = fresh.inputs(copied, None)
    path = next(one for one in before if one.endswith("same-module/study.toml"))
    raw = next(one for one in before if one.startswith("../") and one != path)
    (copied / path).write_text((copied / path).read_text() + "\n")
    (copied / raw).unlink()
    _, after = fresh.inputs(copied, None)
    assert before[path] != after[path]
    assert raw not in after
    assert before.keys() - after.keys() == {raw}


def test_a_change_of_its_files_is_found_by_verify(copied, tmp_path, capsys):
    folder = tmp_path / "reports/qmi_wwan/rx-prefetch"
    folder.mkdir(parents=True)
    content = results.written(assess(open_study(copied)))
    (folder / "report.json").write_bytes(content)
    assert main(["verify", "--data", str(copied), str(folder)]) == 0
    raw = next((copied.parent / "same-module").rglob("*.iperf3.json"))
    told = json.loads(raw.read_text())
    raw.write_text(json.dumps(told) + "\n")
    assert main(["verify", "--data", str(copied), str(folder)]) == 1
    assert f"{raw.name}: changed since the report" in capsys.readouterr().out


def test_a_file_of_it_that_cannot_be_read_is_told(copied):
    raw = next((copied.parent / "same-module").rglob("*.iperf3.json"))
    raw.write_text('{"start": {"version": "iperf 3.12"')
    study = open_study(copied)
    (one,) = [x for x in study.leftovers if x.path.startswith("../same-module/")]
    assert one.broken


def test_names_are_hidden_in_both_alike(copied):
    plain, hidden = open_study(copied), hide(open_study(copied))
    assert hidden.noise is not None
    told = [[one.noise for one in assess(study).tested] for study in (plain, hidden)]
    assert told[0] == told[1] != []


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("../nothing", "is no folder"),
        ("/etc", "is no relative path"),
        ("../../../..", "is no other study beside this one"),
        ("../patch", "is no other study beside this one"),
        ("..", "is no other study beside this one"),
        ("inside", "is no other study beside this one"),
        ("../" + "x" * 300, "is no folder"),
    ],
)
def test_what_is_no_study_beside_this_one_is_refused(write_study, turns, named, words):
    design = DESIGN.format(more=f'[noise]\nstudy = "{named}"')
    folder = write_study(design, turns([1.0, 2.0], [1.0, 2.0]), name="a/patch")
    with pytest.raises(StudyError, match=words):
        open_study(folder)


def test_a_name_with_a_control_mark_is_refused(write_study, turns):
    design = DESIGN.format(more='[noise]\nstudy = "../a\\u0000b"')
    folder = write_study(design, turns([1.0, 2.0], [1.0, 2.0]), name="a/patch")
    with pytest.raises(StudyError, match=r"noise\.study"):
        open_study(folder)
    assert all(not path.startswith("..") for path in fresh.inputs(folder, None)[1])


def test_a_noise_table_without_a_study_is_refused(write_study, turns):
    design = DESIGN.format(more='[noise]\nfolder = "x"')
    folder = write_study(design, turns([1.0, 2.0], [1.0, 2.0]), name="a/patch")
    with pytest.raises(StudyError, match=r"noise\.study: is missing"):
        open_study(folder)


def test_two_studies_may_name_each_other(write_study, turns):
    rows = turns([100.0, 101.0, 99.0], [100.0, 101.0, 99.0])
    first = DESIGN.format(more='[noise]\nstudy = "../two"')
    second = DESIGN.format(more='expect = "same"\n[noise]\nstudy = "../one"')
    folder = write_study(first, rows, name="a/one")
    write_study(second, rows, name="a/two")
    study = open_study(folder)
    assert study.noise.noise is None
    assert isinstance(assess(study).material.units, pd.DataFrame)
