"""One metric on several devices: side by side, never averaged in percent."""

import numpy as np
import pytest
from scipy.special import stdtrit
from statsmodels.stats.meta_analysis import combine_effects

from patchstudy.errors import StudyError
from patchstudy.findings import assess
from patchstudy.report import sections
from patchstudy.report.results import results
from patchstudy.study import open_study
from patchstudy.together import ENOUGH_DEVICES, heterogeneity, pool, sentence, together

DESIGN = """\
question = "Is it faster?"
unit = "run"
block = "block"
[[metrics]]
name = "throughput"
role = "primary"
margin = "2 %"
"""
NOISE = np.array([0.0, 3.0, -2.0, 1.0, -3.0, 2.0])


@pytest.fixture
def devices(write_study, turns):
    """Return a function: a study with such changes in percent, one a device."""

    def of(*changes, noise=1.0, design=DESIGN):
        rows = []
        for at, change in enumerate(changes):
            base = 100 + noise * NOISE
            new = (100 + noise * np.roll(NOISE, 1)) * (1 + change / 100)
            rows += turns(base.tolist(), new.tolist(), blocks=True, device=f"d{at}")
        return assess(open_study(write_study(design, rows)))

    return of


def side_by_side(found):
    return together(found.findings, found.study.design)


def test_devices_are_counted_by_verdict(devices):
    (one,) = side_by_side(devices(10, 12, -20, noise=0.1))
    assert one.counts == {"better": 2, "worse": 1}
    assert not one.same_sign
    assert "the changes do not all point the same way" in sentence(one)
    assert one.i2 > 0.9


def test_devices_that_agree_though_each_is_inconclusive(devices):
    (one,) = side_by_side(devices(1.0, 1.2, 0.9, 1.1, 1.3, 1.0))
    assert one.counts == {"inconclusive": 6}
    assert one.same_sign
    assert one.sign_p == pytest.approx(2 / 64)
    assert (one.i2, one.tau2) == (0.0, 0.0)
    assert one.pooled.low < np.log(1.0108) < one.pooled.high


def test_no_change_of_all_is_claimed_for_few_devices(devices):
    found = devices(*[1.0] * (ENOUGH_DEVICES - 1))
    (one,) = side_by_side(found)
    assert one.pooled is None
    table, note = sections.devices_together(found)
    assert len(table.rows) == ENOUGH_DEVICES - 1
    assert note.text.endswith("no change of all together is claimed.")


def test_enough_devices_give_a_change_of_all(devices):
    found = devices(1.0, 1.2, 0.9, 1.1, 1.3)
    _, note = sections.devices_together(found)
    assert "Over all 5 devices: +1.1 % [" in note.text
    (told,) = results(found)["devices_together"]
    assert told["pooled"]["low"] < told["pooled"]["value"] < told["pooled"]["high"]


def test_one_device_has_nothing_to_agree_with(devices):
    found = devices(10)
    assert side_by_side(found) == ()
    (note,) = sections.devices_together(found)
    assert note.text == "No declared metric was measured on two devices."


def test_a_device_that_cannot_be_compared_is_named_and_left_out(write_study, turns):
    rows = turns([100, 101, 99], [110, 111, 109], blocks=True, device="a")
    rows += turns([100, 101, 99], [111, 110, 109], blocks=True, device="b")
    rows += turns([100], [110], blocks=True, device="c")
    rows += turns([100, 101, 0], [110, 111, 109], blocks=True, device="z")
    found = assess(open_study(write_study(DESIGN, rows)))
    (one,) = side_by_side(found)
    assert one.left_out == {"c": "too few units", "z": "a value is zero: no ratio"}
    assert len(one.used) == 2


def drawn(seed):
    """Effects of some devices with their standard errors."""
    random = np.random.default_rng(seed)
    errors = random.uniform(0.01, 0.5, size=2 + seed % 9)
    return random.normal(0, errors + 0.2 * (seed % 3)), errors


@pytest.mark.parametrize("seed", range(20))
def test_the_heterogeneity_is_that_of_statsmodels(seed):
    values, errors = drawn(seed)
    theirs = combine_effects(values, errors**2, method_re="iterated")
    q, p_value, i2, tau2 = heterogeneity(values, errors)
    assert q == pytest.approx(theirs.q)
    assert p_value == pytest.approx(theirs.test_homogeneity().pvalue)
    assert i2 == pytest.approx(max(0.0, theirs.i2))
    assert tau2 == pytest.approx(max(0.0, theirs.tau2), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_the_pooled_change_is_that_of_hartung_and_knapp(seed):
    values, errors = drawn(seed)
    theirs = combine_effects(values, errors**2, method_re="iterated")
    ours = pool(values, errors, heterogeneity(values, errors)[3])
    assert ours.value == pytest.approx(theirs.mean_effect_re, rel=1e-4, abs=1e-6)
    error = max(theirs.sd_eff_w_re_hksj, theirs.sd_eff_w_re)
    reach = stdtrit(len(values) - 1, 0.975) * error
    assert ours.high - ours.value == pytest.approx(reach, rel=1e-4)


@pytest.mark.parametrize(
    ("settings", "machines", "sign_p", "words"),
    [
        ((), 3, 0.25, "all 3 changes point the same way, which chance alone does with"),
        ((1,), 2, 0.5, "same way, on 2 machines, which chance alone does with p 0.500"),
        ((1, 2), 1, None, "in settings of one machine: one witness, not 3"),
    ],
)
def test_settings_of_one_machine_are_one_witness(
    settings, machines, sign_p, words, devices
):
    told = "".join(f'[devices.d{at}]\nsame_as = "d0"\n' for at in settings)
    found = devices(5, 6, 7, design=f"{DESIGN}[devices.d0]\n{told}")
    (one,) = side_by_side(found)
    assert (one.machines, one.sign_p) == (machines, sign_p)
    assert words in sentence(one)
    (stored,) = results(found)["devices_together"]
    assert (stored["machines"], len(stored["compared"])) == (machines, 3)


@pytest.mark.parametrize(
    "told",
    [
        '[devices.a]\nsame_as = "a"\n',
        '[devices.a]\nsame_as = "b"\n',
        '[devices.a]\nsame_as = "b"\n[devices.b]\nsame_as = "c"\n[devices.c]\n',
    ],
)
def test_a_setting_is_one_of_another_device(told, write_study):
    problem = r"devices\.a\.same_as: must name another device of this study, without"
    with pytest.raises(StudyError, match=problem):
        open_study(write_study(DESIGN + told, []))


def test_settings_of_one_machine_are_not_pooled(devices):
    told = "".join(f'[devices.d{at}]\nsame_as = "d0"\n' for at in range(1, 5))
    found = devices(1.0, 1.2, 0.9, 1.1, 1.3, design=f"{DESIGN}[devices.d0]\n{told}")
    (one,) = side_by_side(found)
    assert one.pooled is None


def test_of_a_device_without_a_change_no_sign_is_told(write_study, turns):
    flat, raised = [100, 101, 102], [110, 111, 112]
    rows = turns(flat, flat, blocks=True, device="a")
    rows += turns(flat, raised, blocks=True, device="b")
    (one,) = side_by_side(assess(open_study(write_study(DESIGN, rows))))
    assert (one.same_sign, one.sign_p) == (None, None)
    assert "point the same way" not in sentence(one)
