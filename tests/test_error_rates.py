"""The error rates that docs/statistics.md promises, with fewer draws."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchstudy import noise, stats
from patchstudy.metrics import Scale

ROOT = Path(__file__).parents[1]
DRAWS = 1000


def _benchmark():
    path = ROOT / "benchmarks" / "error_rates.py"
    spec = importlib.util.spec_from_file_location("error_rates", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["error_rates"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


rates = _benchmark()
PAGE = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("scenario", rates.SCENARIOS, ids=lambda one: one.__name__)
def test_every_bar_holds_and_stands_on_the_page(scenario):
    bars = list(scenario(DRAWS))
    assert bars
    assert [rates.line(bar) for bar in bars if bar.broken] == []
    assert [bar.name for bar in bars if bar.name not in PAGE] == []


def test_the_same_numbers_come_out_again():
    assert list(rates.power(300)) == list(rates.power(300))


def test_a_seed_follows_from_the_name_alone():
    first, again, other = (rates.seeded(name).random() for name in ("a", "a", "b"))
    assert first == again != other


def test_the_first_random_number_is_the_same_on_every_machine():
    assert rates.seeded("arms", "normal", 5, 0.0).random() == 0.2496150511628662


@pytest.mark.parametrize("shape", [one for one in rates.SHAPES if one != "outliers"])
def test_noise_is_centred(shape):
    values = rates.noise(shape, rates.seeded("centred", shape), (100_000,))
    assert abs(values.mean()) < 0.02


# ---- the restated rules -------------------------------------------------------------

values = st.lists(st.integers(-40, 40), min_size=2, max_size=8)
floors = st.sampled_from([0.0, 0.3, 50.0])


@given(values, values, floors)
def test_the_restated_welch_is_ours(base, new, floor):
    base, new = (np.array(side, dtype=float) / 8 for side in (base, new))
    ours = stats.welch(base, new, floors=(floor, floor))
    restated = rates.welch(base[None], new[None], floor)
    found = (restated.value[0], restated.error[0], restated.df[0])
    assert found == pytest.approx((ours.value, ours.standard_error, ours.df))
    bounds = (restated.low()[0], restated.high()[0], restated.low(0.95)[0])
    wide = ours.interval(0.95)
    assert bounds == pytest.approx((wide.low, wide.high, ours.lower(0.95)))


@given(values)
def test_the_restated_paired_is_ours(differences):
    rows = np.array(differences, dtype=float)
    ours = stats.paired(rows)
    restated = rates.paired(rows[None])
    found = (restated.value[0], restated.error[0], restated.df[0])
    assert found == pytest.approx((ours.value, ours.standard_error, ours.df))


# ---- what breaks a bar --------------------------------------------------------------


def bar(rate, *, limit=0.05, draws=10_000, cells=1, at_least=False):
    return rates.Bar(
        name="a", rate=rate, draws=draws, limit=limit, at_least=at_least, cells=cells
    )


@pytest.mark.parametrize(
    ("given", "result"),
    [
        pytest.param(bar(0.05), "pass", id="at the limit"),
        pytest.param(bar(0.056), "pass (within error)", id="2.8 standard errors"),
        pytest.param(bar(0.057), "FAIL", id="3.2 standard errors"),
        pytest.param(bar(0.057, cells=32), "pass (within error)", id="worst of 32"),
        pytest.param(bar(0.06, cells=32), "FAIL", id="too much for the worst of 32"),
        pytest.param(bar(0.0001, limit=0.0), "FAIL", id="one where none may be"),
        pytest.param(bar(0.9, limit=0.94, at_least=True), "FAIL", id="too few"),
        pytest.param(bar(0.9, limit=None), "-", id="shown only"),
    ],
)
def test_the_result_of_a_bar(given, result):
    assert given.result == result


def test_the_worst_cell_is_named():
    cells = [rates.at_most(0.05, name, np.array(hit)) for name, hit in CELLS.items()]
    found = rates.worst(cells, "any")
    assert (found.cell, found.rate, found.cells) == ("bad", 0.5, 2)


def test_a_broken_bar_is_the_exit_status(monkeypatch, capsys):
    monkeypatch.setattr(rates, "SCENARIOS", (broken_scenario,))
    assert rates.main(["--draws", "500"]) == 1
    assert "| a | 90.0 ± 1.3 % | <= 5 % | FAIL |" in capsys.readouterr().out


def test_too_few_draws_are_refused(capsys):
    with pytest.raises(SystemExit):
        rates.main(["--draws", "10"])
    assert "--draws: give at least 200" in capsys.readouterr().err


CELLS = {"good": [False, False], "bad": [True, False]}


def broken_scenario(draws):
    yield bar(0.9, draws=draws)


# ---- a borrowed spread --------------------------------------------------------------

finite = st.floats(-5, 5).map(lambda x: round(x, 3))


@given(
    st.lists(st.lists(finite, min_size=2, max_size=2), min_size=3, max_size=6),
    st.lists(finite, min_size=2, max_size=5),
    st.lists(finite, min_size=2, max_size=5),
)
def test_the_restated_borrowed_intervals_are_ours(boots, base, new):
    values = np.array(boots)
    lent = noise.Lent(
        study="a/same", series=None, scale=Scale.DIFFERENCE, level="boot",
        groups=len(boots), runs=2.0,
        between=float(values.mean(axis=1).std(ddof=1)),
        within=float(np.sqrt(values.var(axis=1, ddof=1).mean())),
    )  # fmt: skip
    bank = (np.array([lent.between]), np.array([lent.within]))
    sides = (np.array([base]), np.array([new]))
    added = noise.with_boots(stats.welch(base, new), lent, confidence=0.95)
    both = rates.with_boots(rates.welch(*sides), bank, len(boots))
    single = noise.without_spread(
        new[0] - base[0], lent, runs=1.0, floor=0.0, confidence=0.95
    )
    alone = rates.welch_free(sides[0][:, :1], sides[1][:, :1], bank, len(boots), 2)
    for ours, restated in ((added, both), (single, alone)):
        bounds = (restated.low()[0], restated.high()[0])
        found = ours and (ours.change.low, ours.change.high)
        assert (found or (restated.value[0],) * 2) == pytest.approx(bounds, abs=1e-9)
