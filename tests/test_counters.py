"""Counters that changed beyond noise are found without being declared."""

import json

import pytest

from patchstudy import counters, tables
from patchstudy.study import open_study

DESIGN = """\
question = "Is it faster?"
unit = "run"
block = "boot"
[[metrics]]
name = "throughput"
role = "primary"
"""


def rows(**readings):
    """Four boots with two runs of each variant; readings give a value by position."""
    made = []
    for boot in range(4):
        for at, variant in enumerate(("baseline", "patched", "patched", "baseline")):
            shared = {"device": "d", "workload": "t", "variant": variant,
                      "boot": boot, "run": at, "position": 4 * boot + at}  # fmt: skip
            for name, reading in {"throughput": lambda *_: 1e8, **readings}.items():
                unit = "bit/s" if name == "throughput" else "1"
                plain = name in {"throughput", "drops"}
                metric = name if plain else f"event:{name}"
                value = reading(variant == "patched", boot, at)
                made.append({**shared, "metric": metric, "unit": unit, "value": value})
    return made


def found(write_study, design=DESIGN, **readings):
    study = open_study(write_study(design, rows(**readings)))
    (one,) = counters.counters(study, tables.per_run(study))
    return one


def test_a_hidden_cost_is_found_and_comes_first(write_study):
    one = found(
        write_study,
        time_squeeze=lambda new, boot, at: 100 * boot + at + 40 * new,
        wakeups=lambda new, boot, at: 1000 - 500 * new + at,
        noise=lambda new, boot, at: (7 * boot + 3 * at) % 5,
    )
    assert [x.shown for x in one.changed] == ["time_squeeze", "wakeups"]
    assert [x.costs for x in one.changed] == [True, False]
    assert one.looked_at == 3
    assert (one.units, one.blocks) == ((8, 8), 4)


def test_blocks_are_respected(write_study):
    """What rises from boot to boot alone is no change, however much it does."""
    one = found(write_study, irqs=lambda new, boot, at: 10.0**boot + (at < 2))
    assert one.changed == ()


def test_counters_with_the_same_readings_are_one(write_study):
    def reading(new, boot, at):
        return 50 * new + boot

    one = found(write_study, rx_dropped=reading, rx_errors=reading)
    (counter,) = one.changed
    assert counter.same == ("rx_errors (measurements)",)
    assert one.looked_at == 1


def test_too_few_runs_say_that_nothing_can_be_found(write_study):
    few = [one for one in rows(drops=lambda new, *_: 9 * new) if one["boot"] == 0]
    study = open_study(write_study(DESIGN, few))
    (one,) = counters.counters(study, tables.per_run(study))
    assert one.changed == ()
    assert one.least_p == pytest.approx(2 / 6)


def test_without_a_change_there_is_nothing_to_show(write_study):
    study = open_study(write_study(DESIGN, rows(drops=lambda *_: 3)))
    assert counters.counters(study, tables.per_run(study)) == ()


def test_the_emulated_control_has_no_change(assessed):
    """Eighteen runs of each variant on a path that the patch does not touch."""
    one = assessed("qmi_wwan/same-module")
    for cell in counters.counters(one.study, one.material.runs):
        assert cell.changed == ()


def test_a_counter_that_nstat_leaves_out_was_zero(write_study):
    files = {}
    for boot in range(4):
        for at, variant in enumerate(("baseline", "patched", "patched", "baseline")):
            kernel = {"IpInReceives": 100 + at, "TcpExtTCPTimeouts": 5}
            if variant == "baseline":
                del kernel["TcpExtTCPTimeouts"]
            folder = f"d/{variant}/boot-{boot}/run-{at}"
            for time, told in (("before", {"IpInReceives": 1}), ("after", kernel)):
                text = json.dumps({"kernel": told})
                files[f"{folder}/t.nstat.{time}.json"] = text
    study = open_study(write_study(DESIGN, (), files))
    (one,) = counters.counters(study, tables.per_run(study))
    found = {x.shown: (x.baseline, x.patched) for x in one.changed}
    assert found["TcpExtTCPTimeouts"] == (0, 5)
