"""The behaviour of the statistics on a study's own spread."""

import numpy as np
import pytest

from patchstudy.errors import StudyError
from patchstudy.report import method


@pytest.fixture(scope="module")
def spread():
    """Return made-up differences of 60 blocks with an sd of 1 %."""
    drawn = np.random.default_rng(7).normal(0, 0.01, 60)
    centred = drawn - drawn.mean()
    return method.Spread(
        what="differences of blocks", arms=(centred,), sd=float(drawn.std(ddof=1))
    )


def test_false_alarms_and_power_are_those_of_the_t_interval(spread):
    table = method.behaviour(spread, changes=(0.0, 0.02), units=(5, 10), draws=1000)
    rows = table.set_index(["change", "units"])
    assert 0.02 < rows.loc[(0.0, 10), "shown"] < 0.08
    assert rows.loc[(0.02, 10), "shown"] > 0.99
    assert rows.loc[(0.02, 5), "shown"] < rows.loc[(0.02, 10), "shown"]
    assert table["covered"].between(0.92, 0.98).all()
    assert (table["wrong"] <= table["shown"]).all()


def test_equal_seeds_give_equal_tables(spread):
    first, second = (
        method.behaviour(spread, draws=20, units=(3,), seed=4) for _ in range(2)
    )
    assert first.equals(second)


def test_two_arms_are_compared_as_unpaired(spread):
    two = method.Spread(what="units", arms=spread.arms * 2, sd=spread.sd)
    table = method.behaviour(two, changes=(0.0,), units=(10,), draws=1000)
    assert 0.02 < table.loc[0, "shown"] < 0.08


def test_the_spread_of_a_shipped_study(assessed):
    found = method.own_spread(assessed("qmi_wwan/same-module"), "throughput")
    assert found.what == "differences of blocks"
    assert len(found.arms[0]) == 9
    assert found.arms[0].mean() == pytest.approx(0, abs=1e-12)
    assert 0.001 < found.sd < 0.01


@pytest.mark.parametrize("name", ["retransmits", "nothing"])
def test_a_metric_without_a_ratio_is_refused(name, assessed):
    with pytest.raises(StudyError, match="not compared as a ratio in this study"):
        method.own_spread(assessed("qmi_wwan/same-module"), name)


def test_the_table_names_itself_made_up(spread):
    table = method.as_table(method.behaviour(spread, draws=5, units=(3,)))
    assert table.caption.startswith("Made-up data with the spread of this study")
    assert table.rows[0][:2] == ("none", "3")
