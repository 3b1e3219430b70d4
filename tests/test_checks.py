"""Each doubt is found where it belongs, and a clean study raises none."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy import checks
from patchstudy.cli import main
from patchstudy.errors import StudyError
from patchstudy.study import open_study
from patchstudy.units import to_base

DESIGN = """\
question = "Is it faster?"
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
margin = "2 %"
"""
BASE = [100.2, 99.8, 100.5, 99.9, 100.1, 100.0]
FASTER = [110.2, 109.8, 110.5, 109.9, 110.1, 110.0]
GOLDEN = Path(__file__).parent / "golden/loaders/iperf3"
TRACED = "main;work 3\nmain;wait 1\n"
ORDERS = {
    "base-rechecked", "fixed-order", "order-unknown", "sequential", "unbalanced-order",
}  # fmt: skip


@pytest.fixture
def doubts(write_study):
    """Return a function that writes a study and returns its doubts by code."""

    def of(rows=(), design=DESIGN, files=None, name="driver/patch"):
        study = open_study(write_study(design, rows, files, name))
        return {one.caveat.code: one for one in checks.check(checks.material(study))}

    return of


def files_of(place="d/{variant}/boot-{boot}/run-{run}/t.", runs=6, boots=3, **facts):
    """Return raw files of runs that took turns; facts are functions of a variant."""
    files = {}
    for run in range(1, runs + 1):
        for turn, variant in enumerate(("baseline", "patched")):
            path = place.format(variant=variant, boot=(run - 1) % boots + 1, run=run)
            position = 2 * run + (turn if run % 2 else 1 - turn)
            told = {"workload": "t", "run": run, "position": position}
            told |= {name: say(variant) for name, say in facts.items()}
            rate = (FASTER if variant == "patched" else BASE)[run - 1]
            files[path + "run.json"] = json.dumps(told)
            files[path + "x.csv"] = f"metric,unit,value\nthroughput,Mbit/s,{rate}\n"
    return files


def test_a_clean_study_raises_no_doubt(doubts, turns):
    assert doubts(turns(BASE, FASTER)) == {}


def test_a_clean_folder_of_raw_files_raises_no_doubt(doubts):
    assert doubts((), 'block = "boot"\n' + DESIGN, files_of()) == {}


def test_the_gravest_doubt_comes_first(write_study, turns):
    rows = turns([100, 101], [110, 111])
    rows = [row | {"position": n} for n, row in enumerate(sorted(rows, key=str))]
    found = checks.check(checks.material(open_study(write_study(DESIGN, rows))))
    severities = [one.caveat.severity.value for one in found]
    assert severities == ["cap", "doubt"]


# ---- order --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("places", "code"),
    [
        ([1, 4, 2, 3, 5, 8, 6, 7], "unbalanced-order"),
        ([1, 2, 4, 3, 5, 6, 8, 7], None),
        ([1, 2, 3, 4, 5, 6, 7, 8], None),
        ([1, 5, 2, 6, 3, 7, 4, 8], "sequential"),
        ([None] * 8, "order-unknown"),
        ([1, 4, 2, 3, 5, 8, 6, None], "order-unknown"),
    ],
)
def test_the_order_of_the_runs(doubts, places, code):
    shared = {"metric": "throughput", "unit": "Mbit/s", "device": "d", "workload": "t"}
    rows = [
        {
            **shared,
            "variant": variant,
            "run": run,
            "position": places[2 * run + turn] or "",
            "value": 100 + run % 3 + 10 * turn,
        }
        for run in range(4)
        for turn, variant in enumerate(("baseline", "patched"))
    ]
    codes = ORDERS & doubts(rows).keys()
    assert codes == ({code} if code else set())


def in_order(letters, blocks=""):
    """Rows of runs in this order, A the baseline."""
    shared = {"metric": "throughput", "unit": "Mbit/s", "device": "d", "workload": "t"}
    return [
        {**shared, "variant": {"A": "baseline", "B": "patched"}[letter], "run": at}
        | {"position": at, "value": 100 + at * 7 % 5, "block": blocks[at - 1 :][:1]}
        for at, letter in enumerate(letters, start=1)
    ]


@pytest.mark.parametrize(
    ("letters", "blocks", "codes"),
    [
        ("AAAAABBBBBA", "", {"sequential", "base-rechecked"}),
        ("AAABBBBBAAA", "", {"sequential", "base-rechecked"}),
        ("BAAAAABBBB", "", {"sequential"}),
        ("AAAAABABBBB", "", {"sequential"}),
        ("AABBABABBA", "", set()),
        ("AABBAB", "", {"unbalanced-order"}),
        ("AABBAABBAABB", "111122223333", {"fixed-order"}),
        ("ABBABAABABBA", "111122223333", set()),
        ("AAABBBAAABBBAAABBB", "111111222222333333", {"sequential"}),
    ],
)
def test_an_order_that_leans_on_time_is_told(doubts, letters, blocks, codes):
    design = ('block = "block"\n' if blocks else "") + DESIGN
    assert ORDERS & doubts(in_order(letters, blocks), design).keys() == codes


def test_boots_that_took_turns_are_not_called_sequential(doubts):
    rows = in_order("AAAAABBBBBBBBBBAAAAAAAAAABBBBBBBBBBAAAAA")
    for at, row in enumerate(rows):
        row["boot"] = f"{at // 5}"
    assert not ORDERS & doubts(rows).keys()


def test_a_trend_over_the_session_is_told(doubts, turns):
    rising = [100 + number for number in range(8)]
    found = doubts(turns(rising, FASTER + FASTER[:2]))
    assert "baseline rises over the session (Kendall tau +1.00" in (
        found["drift"].caveat.text
    )


# ---- replication --------------------------------------------------------------------


def test_two_units_are_few(doubts, turns):
    found = doubts(turns([100, 101], [110, 111, 112]))["few-units"]
    assert found.caveat.text == "only 2 runs in a variant"
    assert found.caveat.todo == "measure at least 5 of each"


def test_one_boot_of_each_variant_is_told(doubts, turns):
    rows = turns(BASE, FASTER)
    for row in rows:
        row["boot"] = row["variant"]
    assert "one boot of each variant" in doubts(rows)["one-boot"].caveat.text


def test_one_boot_in_which_variants_took_turns_is_shared(doubts):
    found = doubts((), DESIGN, files_of(boots=1))
    assert "took turns within one boot" in found["shared-boot"].caveat.text
    assert "one-boot" not in found


@pytest.mark.parametrize("timed", [True, False])
def test_boots_of_one_name_are_two_unless_time_shows_one(doubts, turns, timed):
    rows = sorted(turns(BASE, FASTER), key=lambda row: row["variant"])
    for place, row in enumerate(rows, start=1):
        row |= {"boot": "1", "position": place if timed else ""}
    found = doubts(rows)
    assert "one-boot" in found
    assert "shared-boot" not in found


def test_one_boot_of_one_variant_is_told(doubts, turns):
    rows = turns(BASE, FASTER)
    for row in rows:
        row["boot"] = "a" if row["variant"] == "baseline" else f"b{row['run']}"
    assert "one boot of baseline;" in doubts(rows)["one-boot"].caveat.text


def test_one_build_of_each_variant_is_told(doubts):
    files = files_of(build_id=lambda variant: f"id of {variant}")
    found = doubts((), 'block = "boot"\ntreatment = ["build_id"]\n' + DESIGN, files)
    assert set(found) == {"one-build"}


# ---- files --------------------------------------------------------------------------


def test_a_file_that_some_runs_lack_is_missing(doubts):
    files = files_of()
    del files["d/patched/boot-1/run-4/t.x.csv"]
    found = doubts((), 'block = "boot"\n' + DESIGN, files)["missing-file"]
    assert found.caveat.text == ("no usable measurements file in patched boot-1 run-4")


def test_a_broken_file_and_an_unknown_one_are_told(doubts):
    files = files_of() | {"d/patched/boot-1/run-1/t.z.json": '{"kernel":{"A":1'}
    files["d/patched/boot-1/run-1/no\nlayout.txt"] = "hm\n"
    found = doubts((), 'block = "boot"\n' + DESIGN, files)
    assert found["broken-file"].caveat.severity == "doubt"
    assert "1 file not used: no loader knows" in found["not-used"].caveat.text
    assert found["not-used"].caveat.text.isprintable()


def test_a_run_whose_tool_failed_is_told(doubts):
    golden = GOLDEN / "v312-err-server-killed.json"
    path = "d/patched/boot-1/run-1/t.iperf3.json"
    files = files_of() | {path: golden.read_bytes()}
    found = doubts((), 'block = "boot"\n' + DESIGN, files)["failed-run"]
    assert found.caveat.text.startswith("patched boot-1 run-1: ")


def test_profile_runs_are_kept_apart(doubts):
    files = files_of() | {"d/patched/boot-9/profile-1/t.folded.txt": TRACED}
    found = doubts((), 'block = "boot"\n' + DESIGN, files)
    assert "1 profile run kept apart" in found["profile-apart"].caveat.text


def test_a_declared_metric_without_a_number_is_told(doubts, turns):
    design = DESIGN + '[[metrics]]\nname = "loss"\nrole = "guard"\n'
    found = doubts(turns(BASE, FASTER), design)["no-number"]
    assert found.caveat.text == "no number here: not measured"


def test_metrics_of_several_places_that_nobody_asked_for_are_told(doubts, turns):
    rows = turns(BASE, FASTER)
    for name in ("eth0", "eth1"):
        rows += turns([1, 2], [1, 2], metric="drops", unit="1", interface=name)
    assert "not compared: drops" in doubts(rows)["not-asked"].caveat.text


# ---- another difference -------------------------------------------------------------


def test_a_fact_that_differs_is_told_and_a_declared_one_is_not(doubts):
    files = files_of(kernel=lambda variant: f"6.1-{variant}")
    design = 'block = "boot"\n' + DESIGN
    found = doubts((), design, files, "a/one")["another-difference"]
    assert found.caveat.text == (
        "kernel differs between the variants: baseline: 6.1-baseline; "
        "patched: 6.1-patched"
    )
    assert doubts((), 'treatment = ["kernel"]\n' + design, files, "a/two") == {}


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"build_id": lambda _: "same"}, "treatment-same"),
        ({}, "treatment-unrecorded"),
    ],
)
def test_a_treatment_that_cannot_be_seen_is_told(doubts, facts, code):
    design = 'block = "boot"\ntreatment = ["build_id"]\n' + DESIGN
    assert code in doubts((), design, files_of(**facts))


def test_a_treatment_recorded_for_one_variant_only_is_not_called_the_same(doubts):
    files = files_of()
    for path in [one for one in files if "patched" in one and "run.json" in one]:
        files[path] = json.dumps(json.loads(files[path]) | {"build_id": "x"})
    found = doubts((), 'block = "boot"\ntreatment = ["build_id"]\n' + DESIGN, files)
    assert set(found) & {"treatment-same", "treatment-unrecorded"} == {
        "treatment-unrecorded"
    }


def iperf3(golden, **change):
    """Return a golden file with parts of its start or its set-up changed."""
    document = json.loads(golden.read_text())
    start = document["start"]
    for key, value in change.items():
        (start["test_start"] if key in start["test_start"] else start)[key] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": "iperf 9.9"}, "iperf3 version differs between the variants"),
        ({"num_streams": 4}, "iperf3 streams differs between the variants"),
    ],
)
def test_another_tool_or_setting_of_one_variant_is_told(doubts, change, words):
    golden = GOLDEN / "lab-tcp-egress80.json"
    files = files_of()
    for path in list(files):
        if path.endswith("x.csv"):
            changed = change if "patched" in path else {}
            files[path.replace("x.csv", "iperf3.json")] = iperf3(golden, **changed)
            del files[path]
    found = doubts((), 'block = "boot"\n' + DESIGN, files)["another-difference"]
    assert words in found.caveat.text


def test_a_fact_file_that_differs_is_told(doubts):
    files = files_of()
    for variant, gro in (("baseline", "off"), ("patched", "on")):
        name = f"d/facts/boot-1/{variant}.ethtool_k.txt"
        files[name] = f"tso: on\nrx-gro: {gro}\n"
    found = doubts((), 'block = "boot"\n' + DESIGN, files)["another-difference"]
    assert found.caveat.text == (
        "facts ethtool_k.txt differ between variants: rx-gro: off, rx-gro: on"
    )


# ---- values -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "value", "code"),
    [
        ("cpu_busy", 1.2, "impossible"),
        ("fairness", -0.1, "impossible"),
        ("fairness", 1.0000000000000002, None),
        ("cpu_busy", 1.0, None),
    ],
)
def test_a_share_outside_0_to_1_is_impossible(write_study, turns, metric, value, code):
    rows = turns([90, 91, 92], [90, 92, 93], metric=metric, unit="%")
    design = DESIGN.replace("throughput", metric).replace("2 %", "2 pp")
    found = checks.material(open_study(write_study(design, rows)))
    # loaders refuse such a file; what is worked out from files can still be wrong
    found.units.loc[found.units.index[0], "value"] = value
    codes = {one.caveat.code for one in checks.impossible(found)}
    assert codes == ({code} if code else set())


def test_the_ceiling_is_declared_or_none(write_study, turns):
    rows = turns(BASE, FASTER)
    for number, ceiling in enumerate(("", 'ceiling = "120 Mbit/s"\n')):
        study = open_study(write_study(DESIGN + ceiling, rows, name=f"a/{number}"))
        (question,) = checks.material(study).asked
        expected = (120e6, "the declared ceiling") if ceiling else None
        assert checks.ceiling(study, question) == expected


@pytest.mark.parametrize(
    ("name", "link", "change", "expected"),
    [
        ("tcp-egress80", "1 Gbit/s", {}, (941.48e6, "the 1 Gbit/s link")),
        ("tcp-egress80", "2.5 Gbit/s", {}, (2353.7e6, "the 2.5 Gbit/s link")),
        ("udp-up-20mbit", "1 Gbit/s", {}, (954.98e6, "the 1 Gbit/s link")),
        (
            "udp-up-20mbit",
            "1 Gbit/s",
            {"target_bitrate": 30_000_000, "num_streams": 2},
            (60e6, "the offered load"),
        ),
    ],
)
def test_the_ceiling_of_link_and_offered_load(
    write_study, name, link, change, expected
):
    golden = GOLDEN / f"lab-{name}.json"
    files = {"d/baseline/boot-1/run-1/t.iperf3.json": iperf3(golden, **change)}
    design = f'{DESIGN}[devices.d]\nlink = "{link}"\n'
    study = open_study(write_study(design, (), files))
    limit, why = checks.ceiling(study, checks.material(study).asked[0])
    assert (limit, why) == (pytest.approx(expected[0], rel=1e-5), expected[1])


@pytest.mark.parametrize(
    ("target", "codes"),
    [(18.0e6, {"above-offered"}), (19.9e6, set()), (1e9, {"impossible"})],
    ids=["more than told", "paced in bursts", "above the link"],
)
def test_an_offered_load_is_no_law_of_nature(write_study, target, codes):
    golden = GOLDEN / "lab-udp-up-20mbit.json"
    raw = iperf3(golden, target_bitrate=target)
    files = {
        f"d/{variant}/boot-1/run-{run}/t.iperf3.json": raw
        for variant in ("baseline", "patched")
        for run in (1, 2)
    }
    link = "20 Mbit/s" if "impossible" in codes else "1 Gbit/s"
    design = f'{DESIGN}[devices.d]\nlink = "{link}"\n'
    found = checks.check(checks.material(open_study(write_study(design, (), files))))
    told = {one.caveat.code for one in found}
    assert told & {"impossible", "above-offered"} == codes
    texts = [one.caveat.text for one in found if one.caveat.code == "impossible"]
    assert all(text.endswith("cannot be: above the 20 Mbit/s link") for text in texts)


def test_units_at_the_ceiling_are_told(doubts, turns):
    ceiling, _ = to_base(110.5, "Mbit/s")
    found = doubts(turns(BASE, FASTER), DESIGN + f'ceiling = "{ceiling} bit/s"\n')
    assert found["saturated"].caveat.text == (
        "6 of 6 patched units reach the declared ceiling (110.5 Mbit/s)"
    )


def test_a_full_cpu_in_every_variant_is_told(doubts, turns):
    rows = turns(BASE, FASTER)
    full = turns([99.9] * 6, [99.8] * 6, metric="cpu_busy_max", unit="%")
    assert (
        "the busiest CPU is full" in doubts([*rows, *full])["cpu-saturated"].caveat.text
    )


def test_few_different_values_are_ties(doubts, turns):
    found = doubts(
        turns([100, 101, 100, 101, 100, 101], [101, 100, 101, 100, 101, 100])
    )
    assert found["ties"].caveat.text == "only 2 different values in 12 units"


def test_a_wide_gap_parts_two_groups(doubts, turns):
    found = doubts(turns([100, 101, 99, 100, 100.5], [130, 131, 129, 160, 161]))
    text = found["two-modes"].caveat.text
    assert text.startswith("patched falls into two groups; the gap is 14.5 times")
    assert text.endswith(
        "Above 145.5 Mbit/s: 0 of 5 baseline, 2 of 5 patched (Fisher p 0.44)"
    )


def test_a_unit_far_from_the_others_is_named_and_kept(doubts, turns):
    found = doubts(turns([*BASE[:5], 150], FASTER))["outlier"]
    assert "kept in all figures and tests: baseline run-06" in found.caveat.text


@pytest.mark.parametrize(
    ("calls", "told"), [([300, 310], True), ([110, 108], False), ([40, 41], True)]
)
def test_calls_that_do_not_grow_with_the_bits_are_told(doubts, turns, calls, told):
    rows = turns([100, 101], [110, 111])
    found = doubts([*rows, *turns([100, 100], calls, metric="alloc_count", unit="1")])
    assert ("calls-per-bit" in found) == told


# ---- was it measured as planned -----------------------------------------------------


@pytest.fixture
def planned(write_study, turns):
    """Return a function: store a plan of four blocks, measure, return the doubts."""
    blocked = 'block = "block"\n' + DESIGN

    def of(blocks, *, after=blocked, order=slice(None), pilot=False):
        folder = write_study(blocked, turns(BASE, FASTER, blocks=True))
        path = folder / "plan.json"
        how = [] if pilot else ["--sd", "1 %"]
        told = [*how, "--blocks", "4", "--seed", "1", "--store", str(path)]
        assert main(["plan", str(folder), *told]) == 0
        slots = json.loads(path.read_text())["plans"][0]["slots"]
        each = len(slots) // 4
        taken = (slots * 2)[: blocks * each][order] if not pilot else []
        rows = in_order("".join("AB"[one["variant"] == "patched"] for one in taken))
        for at, row in enumerate(rows):
            row |= {"device": "router", "workload": "tcp", "block": at // each}
        (folder / "study.toml").write_text(after)
        if rows:
            with (folder / "measurements.csv").open("w", newline="") as to:
                table = csv.DictWriter(to, rows[0])
                table.writeheader()
                table.writerows(rows)
        study = open_study(folder)
        found = checks.check(checks.material(study))
        return {one.caveat.code: one.caveat.text for one in found}

    return of


PLANNING = {
    "design-changed", "optional-stopping", "order-not-planned", "own-pilot",
    "stopped-early", "text-changed",
}  # fmt: skip


def test_a_study_measured_as_planned_raises_no_doubt(planned):
    assert not PLANNING & planned(4).keys()


def test_fewer_runs_than_planned_are_told(planned):
    found = planned(3)
    assert PLANNING & found.keys() == {"stopped-early"}
    assert found["stopped-early"] == "stopped early: 24 of 32 planned runs"


def test_more_runs_than_planned_are_told(planned):
    found = planned(5)
    assert PLANNING & found.keys() == {"optional-stopping"}
    assert "40 runs where 32 were planned" in found["optional-stopping"]


def test_another_order_than_planned_is_told(planned):
    found = planned(4, order=slice(None, None, 3))
    assert {"order-not-planned", "stopped-early"} == PLANNING & found.keys()


def test_a_margin_that_changed_after_planning_is_told(planned):
    after = 'block = "block"\n' + DESIGN.replace("2 %", "5 %")
    found = planned(4, after=after)
    assert found["design-changed"].endswith("throughput (primary)")


def test_a_text_that_changed_after_planning_is_a_note(planned):
    found = planned(4, after='setting = "a lab"\nblock = "block"\n' + DESIGN)
    assert PLANNING & found.keys() == {"text-changed"}


def test_a_plan_made_from_these_runs_says_nothing_of_them(planned):
    assert PLANNING & planned(4, pilot=True).keys() == {"own-pilot"}


def test_a_file_that_is_no_plan_is_refused(write_study, turns):
    folder = write_study(DESIGN, turns(BASE, FASTER), {"plan.json": '{"plans": 1}'})
    with pytest.raises(StudyError, match=r"plan\.json: no stored plan \(KeyError"):
        open_study(folder)


# ---- what the kernel says -----------------------------------------------------------

DMESG = "[    0.000000] Linux version 6.1.0 (x) #1 SMP\n[    1.500000] eth0: up\n"
SPLAT = "[   12.000001] WARNING: CPU: 0 PID: 77 at net/core/dev.c:12 f+0x1/0x2\n"


def kernel_says(baseline, patched, place="d/{variant}/boot-2/run-2/t.dmesg.txt"):
    """Files of a study whose kernels said this."""
    said = {"baseline": baseline, "patched": patched}
    return files_of() | {
        place.format(variant=name): text for name, text in said.items() if text
    }


@pytest.mark.parametrize(
    "place",
    ["d/{variant}/boot-2/run-2/t.dmesg.txt", "d/facts/boot-2/{variant}.dmesg.txt"],
)
def test_a_kernel_warning_that_only_patched_runs_have_is_told(doubts, place):
    design = 'block = "boot"\n' + DESIGN
    found = doubts((), design, kernel_says(DMESG, DMESG + SPLAT, place))
    assert found["kernel-warning"].caveat.severity == "cap"
    assert found["kernel-warning"].caveat.text.startswith(
        "patched: the kernel warns as with no baseline run: 'WARNING: CPU: 0 PID: 77"
    )


@pytest.mark.parametrize(
    ("baseline", "patched", "code"),
    [
        (DMESG, DMESG, None),
        (DMESG + SPLAT.replace("77", "91"), DMESG + SPLAT, None),
        (DMESG + SPLAT, DMESG, None),
        ("", DMESG, None),
        ("", DMESG + SPLAT, "kernel-warning-alone"),
    ],
    ids=["none", "the same", "only baseline", "not recorded", "not comparable"],
)
def test_other_kernel_messages_are_no_veto(doubts, baseline, patched, code):
    found = doubts((), 'block = "boot"\n' + DESIGN, kernel_says(baseline, patched))
    warned = {one for one in found if one.startswith("kernel")}
    assert warned == ({code} if code else set())
