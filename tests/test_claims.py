"""Claims of mails: how they are read, and what their own numbers and data say."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

from patchstudy import claims, stats
from patchstudy.claims import Outcome, by_the_mail
from patchstudy.errors import StudyError
from patchstudy.findings import assess
from patchstudy.metrics import metric
from patchstudy.report import results, sections, text
from patchstudy.study import ClaimKind, open_study, parse_change, read_design

STUDY = """\
question = "Is it faster?"
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
margin = "2 %"
"""


def study(*lines, design=STUDY):
    """Return the text of a study.toml with one claim."""
    return "\n".join([design, "[[claims]]", 'text = "as mailed"', *lines, ""])


@pytest.fixture
def claim(tmp_path):
    """Return a function that reads one claim of the throughput, or another metric."""

    def read(name="throughput", **keys):
        lines = [f'metric = "{name}"', *(f'{k} = "{v}"' for k, v in keys.items())]
        (tmp_path / "study.toml").write_text(study(*lines), encoding="utf-8")
        (one,) = read_design(tmp_path).claims
        return one

    return read


# ---- the forms ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "low", "high"),
    [
        ("+50 %", "percent", 0.495, 0.505),
        ("-61.3 %", "percent", -0.6135, -0.6125),
        ("60 % lower", "percent", -0.605, -0.595),
        ("about -60 %", "percent", -0.65, -0.55),
        ("~95% higher", "percent", 0.94, 0.96),
        ("250.8x", "factor", 250.75, 250.85),
        ("3 times", "factor", 2.5, 3.5),
        ("2x lower", "factor", 0.4, 2 / 3),
        ("+100 Mbit/s", "difference", 99.5e6, 100.5e6),
        ("300 Mbit/s", "value", 299.5e6, 300.5e6),
        ("about 300 Mbit/s", "value", 250e6, 350e6),
    ],
)
def test_a_change_is_read_with_what_its_last_digit_leaves(text, kind, low, high):
    stated = parse_change(text, metric("throughput"))
    assert stated.kind == kind
    assert stated.bounds is not None
    assert (stated.bounds.low, stated.bounds.high) == pytest.approx((low, high))
    assert stated.about == (text[0] in "a~")


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("200 -> 300 Mbit/s", (200e6, 300e6)),
        ("0.5 Gbit/s -> 700 Mbit/s", (500e6, 700e6)),
        ("about 200 -> about 300 Mbit/s", (200e6, 300e6)),
        ("200 → ~300 Mbit/s", (200e6, 300e6)),
    ],
)
def test_two_values_share_a_unit_or_have_one_each(text, ends):
    stated = parse_change(text, metric("throughput"))
    assert stated.kind is ClaimKind.VALUES
    assert stated.ends is not None
    assert tuple(one.bounds.value for one in stated.ends) == ends


def test_points_and_words_of_equality_are_forms_too():
    points = parse_change("-3.5 pp", metric("cpu_busy"))
    assert (points.kind, points.decimals) == ("difference", 1)
    assert points.bounds is not None
    assert points.bounds.value == pytest.approx(-0.035)
    assert parse_change("no change", metric("cpu_busy")).kind is ClaimKind.EQUAL


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (('change = "60 %"',), "change: '60 %' does not say in which direction"),
        (('change = "+60 % lower"',), "does not say in which direction"),
        (('change = "60 % faster"',), "'faster' is none of fewer, higher"),
        (('change = "much better"',), "'much better' is no change; write it as"),
        (('change = "300 ms"',), "'300 ms' does not fit throughput, which is in"),
        (('change = "300 Mbps"',), "is no change; write it as"),
        (('baseline = "362"',), "baseline: '362' does not fit throughput"),
        (('patched = "1 s / 2 s / 3"',), "divides more than once"),
        (('variant = "other"',), "variant: 'other' is not patched"),
        (('of = "old"',), "of: must be one of 'baseline', 'patched'"),
        (('valeu = "1"',), "unknown key"),
    ],
)
def test_a_claim_that_cannot_be_read_is_an_error_with_its_key(tmp_path, lines, words):
    toml = study('metric = "throughput"', *lines)
    (tmp_path / "study.toml").write_text(toml, encoding="utf-8")
    with pytest.raises(StudyError, match=r"claims\[1\]\.") as error:
        read_design(tmp_path)
    assert words in str(error.value)


def test_a_claim_of_a_metric_that_nobody_knows_is_an_error(tmp_path):
    (tmp_path / "study.toml").write_text(study('metric = "speed"'), encoding="utf-8")
    with pytest.raises(StudyError, match=r"claims\[1\].metric: unknown metric 'speed'"):
        read_design(tmp_path)


# ---- the mail's own numbers (oracle 23: arithmetic of published threads) ------------


@pytest.mark.parametrize(
    ("change", "outcome", "value"),
    [
        ("-60 %", "does not follow", -0.6133),
        ("about -60 %", "follows", -0.6133),
        ("-61 %", "follows", -0.6133),
        ("-61.3 %", "follows", -0.6133),
        ("-61.4 %", "follows", -0.6133),  # 361.5 -> 139.5 is -61.4
        ("-61.6 %", "does not follow", -0.6133),
        ("equal", "does not follow", -0.6133),
        ("0.39x", "follows", 140 / 362),
        ("-222 Mbit/s", "follows", -222e6),
        ("140 Mbit/s", "follows", 140e6),
        ("362 -> 140 Mbit/s", "follows", -0.6133),
        ("360 -> 140 Mbit/s", "does not follow", -0.6133),
    ],
)
def test_a_claim_is_computed_again_from_362_and_140(claim, change, outcome, value):
    found = by_the_mail(
        claim(change=change, baseline="362 Mbit/s", patched="140 Mbit/s")
    )
    assert found.outcome == outcome
    assert found.found is not None
    assert found.found.value == pytest.approx(value, rel=1e-3)
    assert "-61.3 % [-61.5, -61.1] of the baseline 362 Mbit/s" in found.why


@pytest.mark.parametrize(
    ("values", "change", "outcome", "words"),
    [
        (("4.7 Gbit/s", "7 Gbit/s"), "about +50 %", "follows", "+48.9 %"),
        (("210.3 s", "196.7 s"), "-8.4 %", "does not follow", "-6.5 % [-6.5, -6.4]"),
        (("210.3 s", "181.5 s"), "-13.7 %", "follows", "-13.7 %"),
        (
            ("600 Mbit/s", "700 Mbit/s"),
            "+14 %",
            "does not follow",
            "it is +14.3 % [+14.2, +14.4] of the patched value",
        ),
        (
            ("362 Mbit/s", "140 Mbit/s"),
            "+159 %",
            "does not follow",
            "it is +158.6 % [+157.3, +159.9] when the two are exchanged",
        ),
        (
            ("0.05 Mbit/s", "12.54 Mbit/s"),
            "about 250x",
            "follows",
            "250.8 times the baseline [227.9, 278.8]",
        ),
    ],
)
def test_published_threads(claim, values, change, outcome, words):
    base, new = values
    name = "rtt_mean" if base.endswith(" s") else "throughput"
    found = by_the_mail(claim(name, change=change, baseline=base, patched=new))
    assert found.outcome == outcome
    assert words in found.why


def test_a_percentage_of_the_patched_value_is_taken_of_it(claim):
    values = {"baseline": "600 Mbit/s", "patched": "700 Mbit/s"}
    found = by_the_mail(claim(change="+14.3 %", of="patched", **values))
    assert found.outcome is Outcome.FOLLOWS
    assert "of the patched 700 Mbit/s" in found.why


def test_times_per_item_are_computed_from_totals(claim):
    found = by_the_mail(
        claim(
            "alloc_time",
            change="0.7 -> 0.4 us",
            baseline="7.677069 s / 10890789",
            patched="14.241828 s / 33211099",
        )
    )
    assert found.outcome is Outcome.FOLLOWS
    assert "704.9 ns -> 428.8 ns" in found.why
    assert "-39.2 %" in found.why


def test_bytes_over_seconds_are_a_rate(claim):
    found = by_the_mail(
        claim(
            change="0.05 -> 12.54 Mbit/s",
            baseline="2000000 byte / 341.79 s",
            patched="2000000 byte / 1.29 s",
        )
    )
    assert found.outcome is Outcome.FAILS  # 12.40, and 12.45 by rounding at most
    assert "46.81 kbit/s -> 12.40 Mbit/s" in found.why


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "the claim states no change"),
        ({"change": "+50 %"}, "the mail's own values are not in study.toml"),
        ({"change": "200 -> 300 Mbit/s"}, "the two values themselves"),
        (
            {"change": "3x", "baseline": "0 Mbit/s", "patched": "3 Mbit/s"},
            "no ratio of 3e+06 to 0",
        ),
    ],
)
def test_what_cannot_be_checked_says_why(claim, keys, words):
    found = by_the_mail(claim(**keys))
    assert found.outcome is Outcome.OPEN
    assert words in found.why


# ---- the data -----------------------------------------------------------------------


@pytest.fixture
def checked(write_study, turns):
    """Return a function that checks one claim against six runs of each variant."""

    def check(*lines, base=100.0, new=150.0, design=STUDY, name="throughput"):
        rows = turns(
            [base * (1 + at / 1000) for at in range(6)],
            [new * (1 + at / 1000) for at in range(6)],
        )
        folder = write_study(study(f'metric = "{name}"', *lines, design=design), rows)
        (one,) = claims.check(assess(open_study(folder)))
        return one

    return check


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ("+50 %", "follows"),
        ("+52 %", "does not follow"),
        ("1.5x", "follows"),
        ("3x", "does not follow"),
        ("200 -> 300 Mbit/s", "follows"),  # the ratio is held against the data
        ("+50 Mbit/s", "follows"),
        ("+60 Mbit/s", "does not follow"),
        ("150 Mbit/s", "follows"),
        ("300 Mbit/s", "does not follow"),
        ("equal", "does not follow"),
    ],
)
def test_a_claim_is_held_against_the_interval_of_the_data(checked, change, outcome):
    (found,) = checked(f'change = "{change}"').data
    assert (found.device, found.workload) == ("router", "tcp")
    assert found.outcome == outcome
    assert "of 100.2 Mbit/s" in found.why


def test_equality_follows_from_an_equivalence_alone(checked):
    (found,) = checked('change = "equal"', new=100.1).data
    assert found.outcome is Outcome.FOLLOWS
    assert "within the margin of 2 %" in found.why


def test_what_the_data_leave_open_does_not_follow_from_them(write_study, turns):
    rows = turns([100, 130, 80, 110], [120, 160, 90, 125])
    for change, outcome in (("+10 %", Outcome.OPEN), ("+900 %", Outcome.FAILS)):
        toml = study('metric = "throughput"', f'change = "{change}"')
        folder = write_study(toml, rows, name=f"driver/{outcome}")
        (one,) = claims.check(assess(open_study(folder)))
        assert one.data[0].outcome is outcome


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('device = "other"', "throughput was not measured on other"),
        ('workload = "udp"', "throughput was not measured on udp"),
    ],
)
def test_a_claim_of_another_device_or_workload_is_not_checked_here(
    checked, line, words
):
    (found,) = checked('change = "+50 %"', line).data
    assert (found.outcome, found.why) == (Outcome.OPEN, words)


def test_a_percentage_has_no_place_on_a_scale_of_differences(write_study, turns):
    rows = turns([0.10, 0.11, 0.12], [0.20, 0.21, 0.22], metric="cpu_busy", unit="1")
    design = STUDY.replace('"throughput"', '"cpu_busy"').replace("2 %", "2 pp")
    outcomes = {"+90 %": Outcome.OPEN, "+10 pp": Outcome.FOLLOWS}
    outcomes["11 % -> 21 %"] = Outcome.FOLLOWS
    for number, (change, outcome) in enumerate(outcomes.items()):
        toml = study('metric = "cpu_busy"', f'change = "{change}"', design=design)
        folder = write_study(toml, rows, name=f"driver/n{number}")
        (one,) = claims.check(assess(open_study(folder)))
        assert one.data[0].outcome is outcome, change


# ---- published values ---------------------------------------------------------------


@pytest.fixture
def published(write_study):
    """Return a function that writes a study of published values, one a variant."""

    def write(*lines, rows=()):
        shared = {"metric": "throughput", "unit": "Mbit/s", "device": "sis900"}
        shared |= {"workload": "tcp", "kind": "published", "source": "a mail of 2019"}
        told = [
            shared | {"variant": "baseline", "value": "0.05"},
            shared | {"variant": "patched", "value": "12.54"},
        ]
        return write_study(
            study('metric = "throughput"', 'change = "250x"', *lines), [*told, *rows]
        )

    return write


def test_one_published_value_each_is_not_assessable_and_has_rounding_bounds(published):
    assessment = assess(open_study(published()))
    (one,) = results.results(assessment)["comparisons"]
    assert (one["verdict"], one["change"]) == ("not assessable", None)
    assert one["device"] == "sis900 (published)"
    bounds = [one["rounded"][end] for end in ("value", "low", "high")]
    assert bounds == pytest.approx([250.8, 227.9, 278.8], abs=0.05)
    assert "251, by rounding between 228 and 279" in one["sentence"]
    assert results.results(assessment)["decision"] == "not yet"
    (check,) = claims.check(assessment)
    assert check.data[0].outcome is Outcome.FOLLOWS
    assert "by rounding, one unit each" in check.data[0].why


def test_published_values_are_named_so_wherever_they_are_shown(published):
    assessment = assess(open_study(published()))
    content = results.results(assessment)["provenance"]["published"]
    assert content == {"sis900 (published)": ["a mail of 2019"]}
    notes = " ".join(getattr(x, "text", "") for x in sections.provenance(assessment))
    assert "sis900 (published): not measured here; from a mail of 2019." in notes
    assert "sis900 (published)" in text.text(assessment)


def test_published_values_stand_apart_and_do_not_decide(published, turns):
    measured = turns(
        [100 + at / 10 for at in range(6)],
        [150 + at / 10 for at in range(6)],
        device="sis900",
    )
    assessment = assess(open_study(published(rows=measured)))
    devices = {one.device: str(one.decision) for one in assessment.devices}
    assert devices == {"sis900": "accept", "sis900 (published)": "not yet"}
    assert str(assessment.decision) == "accept"
    assert "published" not in assessment.sentence
    assert not results.results(assessment)["devices_together"]


def test_run_facts_mark_a_raw_file_as_published(write_study):
    netperf = (
        "TCP STREAM TEST from 0.0.0.0 () port 0 AF_INET to made.example () port 0 "
        "AF_INET : demo\nRecv   Send    Send\nSocket Socket  Message  Elapsed\n"
        "Size   Size    Size     Time     Throughput\n"
        "bytes  bytes   bytes    secs.    10^6bits/sec\n\n"
        " 87380 327680 327680    1.29       {}\n"
    )
    note = '{"purpose": "measurement", "run": 1, "kind": "published", "source": "it"}'
    files = {}
    for variant, rate in (("baseline", "0.05"), ("patched", "12.54")):
        place = f"sis900/{variant}/boot-01/run-01/tcp"
        files[f"{place}.netperf.txt"] = netperf.format(rate)
        files[f"{place}.run.json"] = note
    assessment = assess(open_study(write_study(STUDY, files=files)))
    (found,) = assessment.devices
    assert found.device == "sis900 (published)"
    (bounds,) = {one.comparison.rounded for one in assessment.findings
                 if one.planned.metric.name == "throughput"}  # fmt: skip
    assert bounds is not None
    assert (bounds.low, bounds.high) == pytest.approx((227.9, 278.8), abs=0.05)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source": ""}, "a published value needs a source"),
        ({"kind": "printed"}, "kind 'printed' is not measured or published"),
    ],
)
def test_a_published_row_without_a_source_is_refused(published, change, words):
    folder = published()
    table = folder / "measurements.csv"
    old = {"source": "a mail of 2019", "kind": "published"}
    ((key, value),) = change.items()
    table.write_text(table.read_text().replace(old[key], value))
    with pytest.raises(StudyError, match="no run of baseline or patched") as error:
        open_study(folder)
    assert words in str(error.value)


# ---- rounding -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "about", "low", "high"),
    [
        ("0.05", False, 0.045, 0.055),
        ("300", False, 299.5, 300.5),
        ("300", True, 250, 350),
        ("95", True, 94, 96),
        ("12.50", True, 12.45, 12.55),
        ("1.2e6", False, 1.15e6, 1.25e6),
        ("0", True, -1, 1),
    ],
)
def test_what_a_printed_number_can_stand_for(number, about, low, high):
    bounds = stats.printed(number, about=about)
    assert (bounds.low, bounds.high) == pytest.approx((low, high))


@pytest.mark.parametrize("number", ["", "nan", "1_000", "1,5", "inf", "0x10"])
def test_what_is_no_decimal_number_is_refused(number):
    with pytest.raises(ValueError, match="is no number such as"):
        stats.printed(number)


def test_a_ratio_to_what_may_be_zero_has_no_upper_bound():
    bounds = stats.quotient(stats.printed("5"), stats.printed("0.4").scaled(1.0))
    assert bounds.high == pytest.approx(5.5 / 0.35)
    assert stats.quotient(stats.printed("5"), stats.within(0.1, 0.4)).high == float(
        "inf"
    )


def test_the_text_block_tells_claims_shortly_and_published_numbers_once(published):
    folder = published('baseline = "0.05 Mbit/s"', 'patched = "12.54 Mbit/s"')
    told = " ".join(text.text(assess(open_study(folder))).split())
    assert "Claims: throughput 250x follows by the mail, 0.05 Mbit/s -> 12.54" in told
    assert "250.8 times the baseline [227.9, 278.8]." in told
    assert "by sis900" not in told


def test_a_title_names_the_study_and_is_no_markup(write_study, turns):
    design = 'title = "a *b* <i>\\\\1 c_d\\n# e"\n' + STUDY
    study = open_study(write_study(design, turns([1, 2, 3], [2, 3, 4])))
    assert study.title == "a *b* <i>\\1 c_d # e"
    assert text.text(assess(study)).startswith("a *b* <i>\\1 c_d # e: ")


# ---- equal to a reference device (simulated values) ---------------------------------

NEAR = [150 * (1 + at / 1000) for at in range(6)]
SLOW = [100 * (1 + at / 1000) for at in range(6)]


@pytest.fixture
def beside(write_study, turns):
    """Return a function that checks a simulated modem against a simulated dongle."""

    def check(modem, dongle, *lines, name="driver/patch"):
        other = turns(*dongle, device="dongle")
        rows = [*turns(*modem, device="modem"), *other]
        keys = ('metric = "throughput"', 'change = "equal"', 'reference = "dongle"')
        folder = write_study(study(*keys, *lines), rows, name=name)
        return assess(open_study(folder))

    return check


def data_of(assessment):
    (one,) = claims.check(assessment)
    assert one.mail.outcome is Outcome.OPEN
    return one.data


def test_a_patched_device_within_the_margin_of_the_reference_follows(beside):
    (found,) = data_of(beside((SLOW, NEAR), ([150.2 * x / 150 for x in NEAR], [])))
    assert (found.device, found.workload) == ("modem", "tcp")
    assert found.outcome is Outcome.FOLLOWS
    # oracle: both one-sided tests on logs (scipy.stats.ttest_ind, unequal variances)
    assert found.found is not None
    assert found.found.value == pytest.approx(150 / 150.2 - 1)
    assert found.found.low > -0.02
    assert found.found.high < 0.02
    assert "within the margin of 2 %" in found.why
    assert "6 runs against 6 of dongle, baseline" in found.why


def test_the_two_one_sided_tests_decide(beside):
    margin = np.log1p(0.02)
    outcomes = set()
    for ratio in (1.0, 1.01, 1.017, 1.0179, 1.0185, 1.019, 1.03):
        other = [x * ratio for x in NEAR]
        (found,) = data_of(beside((SLOW, NEAR), (other, []), name=f"by/n{ratio}"))
        own, theirs = np.log(NEAR), np.log(other)
        higher = ttest_ind(own + margin, theirs, equal_var=False, alternative="greater")
        lower = ttest_ind(own - margin, theirs, equal_var=False, alternative="less")
        same = max(higher.pvalue, lower.pvalue) < 0.05
        outcomes.add(found.outcome)
        # a real difference is equal only if the two-sided 95 % interval is inside
        assert same or found.outcome is not Outcome.FOLLOWS, ratio
    assert outcomes == {Outcome.FOLLOWS, Outcome.OPEN, Outcome.FAILS}


def test_a_device_beyond_the_margin_does_not_follow(beside):
    (found,) = data_of(beside((SLOW, [120.0, 121, 122]), (NEAR, [])))
    assert found.outcome is Outcome.FAILS
    assert "beyond the margin of 2 %" in found.why


def test_no_difference_shown_is_no_equality(beside):
    (found,) = data_of(beside(([100, 101, 99], [120, 180, 150]), ([150, 155, 145], [])))
    assert found.outcome is Outcome.OPEN
    assert found.why.startswith("inconclusive")


def test_the_reference_is_taken_with_the_same_kernel_if_it_has_it(beside):
    (found,) = data_of(beside((SLOW, NEAR), (SLOW, NEAR)))
    assert found.outcome is Outcome.FOLLOWS
    assert "of dongle, patched" in found.why


def test_one_unit_each_cannot_be_equal(beside):
    (found,) = data_of(beside(([200], [300]), ([300], [])))
    assert (found.outcome, found.why) == (
        Outcome.OPEN,
        "1 and 1 units: no test of equality",
    )


def test_a_reference_that_was_not_measured_is_named(beside):
    (found,) = data_of(beside((SLOW, NEAR), ([], [])))
    assert found.why == "throughput of tcp was not measured on dongle"


def test_what_is_doubted_of_the_reference_counts(write_study, turns):
    late = [row | {"position": row["position"] + 100 * (row["variant"] == "patched")}
            for row in turns(SLOW, NEAR, device="dongle")]  # fmt: skip
    rows = [*turns(SLOW, NEAR, device="modem"), *late]
    keys = ('metric = "throughput"', 'change = "equal"', 'reference = "dongle"')
    (found,) = data_of(assess(open_study(write_study(study(*keys), rows))))
    assert found.outcome is Outcome.OPEN
    assert "confounded with time order" in found.why


def test_a_claim_beside_a_reference_is_told_with_its_name(beside):
    assessment = beside((SLOW, NEAR), (NEAR, []), 'device = "modem"')
    told = " ".join(text.text(assessment).split())
    assert "throughput equal to dongle follows by modem" in told
    (one,) = results.results(assessment)["claims"]
    assert one["reference"] == "dongle"
    assert any("equal to dongle" in x for x in sections.claims(assessment).rows[0])


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (('change = "+5 %"',), "change: beside a reference device it must be 'equal'"),
        (
            ('change = "equal"', 'device = "dongle"'),
            "reference: 'dongle' is the device",
        ),
        (('change = "equal"', 'patched = "3 Mbit/s"'), "patched: a claim beside a ref"),
    ],
)
def test_a_claim_beside_a_reference_is_of_equality_alone(tmp_path, lines, words):
    toml = study('metric = "throughput"', 'reference = "dongle"', *lines)
    (tmp_path / "study.toml").write_text(toml, encoding="utf-8")
    with pytest.raises(StudyError) as error:
        read_design(tmp_path)
    assert words in str(error.value)
