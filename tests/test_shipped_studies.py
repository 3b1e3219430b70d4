"""What must be seen in the shipped studies, and what must not."""

import pytest

from patchstudy import claims
from patchstudy.checks import layout_floor

DEVICE = "qemu-tcg-icount-250mips"
HEADROOM = "qmi_wwan/qmap-headroom"
#: Files of the shipped studies that no loader reads yet: their names' last parts.
UNREAD = {
    "ftrace_function_graph.txt",
    "ftrace_kprobe_events.txt",
    "perf_report.txt",
    "perf_report_children.txt",
    "trace_hist.lab_direct.txt",
    "trace_hist.lab_in.txt",
    "trace_hist.lab_map.txt",
    "trace_hist.lab_unmap.txt",
    "trace_hist.pskb_expand_head.txt",
}
#: Where a study, or a driver, was measured on another one.
DEVICES = {
    "bgmac": "bcm4708 (published)",
    "bgmac/code-placement": "bcm47094 (published)",
    "sis900": "sis900 (published)",
    "tmi": "uxm (published)",
    "veth": "x86-vm-6.18",
}
STUDIES = [
    "bgmac/code-placement",
    "bgmac/prefetch",
    "bgmac/rx-buffer-size",
    "e1000/rx-buffer-size",
    "e1000/rx-prefetch",
    HEADROOM,
    "qmi_wwan/rx-prefetch",
    "qmi_wwan/same-module",
    "qmi_wwan/same-module-sequential",
    "qmi_wwan/tx-skb-orphan",
    "sis900/tx-completion",
    "sis900/tx-skb-orphan",
    "tmi/buffer-pool",
    "tmi_lab/buffer-pool",
    "tmi_lab/buffer-pool-same-allocator",
    "veth/gro",
    "veth/txqueuelen",
]
#: Study, metric and workload -> verdict, first qualifier, decision, and the range in
#: which both ends of the interval of the change lie.
EXPECTED = [
    pytest.param(
        ("bgmac/code-placement", "throughput", "nat-commit"),
        ("inconclusive", "within layout noise", "not yet"),
        (0.035, 0.05),
        id="a commit that adds an unused symbol is not credited with a gain",
    ),
    pytest.param(
        ("bgmac/code-placement", "throughput", "nat-align"),
        ("inconclusive", "within layout noise", "not yet"),
        (-0.013, -0.005),
        id="an alignment is not blamed for a loss",
    ),
    pytest.param(
        ("e1000/rx-buffer-size", "throughput", "tcp-nat"),
        ("worse", "material", "reject claim"),
        (-0.18, -0.165),
        id="larger receive buffers cost a sixth of the throughput",
    ),
    pytest.param(
        ("e1000/rx-prefetch", "throughput", "tcp-nat"),
        ("inconclusive", "fragile", "not yet"),
        (-0.03, 0.03),
        id="a null of two boots is no proof of equality",
    ),
    pytest.param(
        ("tmi_lab/buffer-pool", "throughput", "tcp-p5"),
        ("worse", "material", "reject claim"),
        (-0.075, -0.055),
        id="the pool costs throughput",
    ),
    pytest.param(
        ("tmi_lab/buffer-pool-same-allocator", "throughput", "tcp-p5"),
        ("inconclusive", "fragile", "not yet"),
        (-0.15, 0.15),
        id="with the same allocator two boots cannot tell",
    ),
    pytest.param(
        (HEADROOM, "throughput", "tcp-egress80"),
        ("better", "material", "accept"),
        (0.05, 0.065),
        id="headroom raises throughput",
    ),
    pytest.param(
        ("qmi_wwan/rx-prefetch", "throughput", "tcp-egress80"),
        ("equivalent", "one build each", "reject claim"),
        (-0.01, 0.01),
        id="a prefetch without a cache changes nothing",
    ),
    pytest.param(
        ("qmi_wwan/tx-skb-orphan", "loss", "udp-up-20mbit"),
        ("worse", "material", "veto"),
        (0.90, 0.92),
        id="orphaning loses what it sends",
    ),
]


@pytest.fixture
def finding(assessed):
    """Return a function that finds one finding of a shipped study."""

    def of(study, metric, workload, device=None, variant="patched"):
        (one,) = [
            one
            for one in assessed(study).findings
            if one.planned.metric.name == metric
            and one.comparison.question.workload == workload
            and one.comparison.question.device == (device or one_device(study))
            and one.comparison.variant == variant
        ]
        return one

    def one_device(study):
        driver = study.partition("/")[0]
        return DEVICES.get(study, DEVICES.get(driver, DEVICE))

    return of


@pytest.mark.parametrize(("where", "words", "ends"), EXPECTED)
def test_what_careful_people_found_is_found(assessed, finding, where, words, ends):
    one = finding(*where)
    change = one.comparison.change
    assert (one.verdict, one.qualifiers[0], assessed(where[0]).decision) == words
    assert ends[0] < change.low < change.high < ends[1]


def test_headroom_raises_throughput_by_five_to_six_and_a_half_percent(finding):
    one = finding(HEADROOM, "throughput", "tcp-egress80")
    change = one.comparison.change
    assert (one.verdict, one.qualifiers[0]) == ("better", "material")
    assert 0.05 < change.low < change.high < 0.065
    assert (one.comparison.blocks, one.comparison.unit_of_analysis[:4]) == (11, "boot")


@pytest.mark.parametrize(
    ("metric", "workload", "device"),
    [
        ("throughput", "tcp-egress80", "qemu-tcg-icount-125mips"),
        ("packet_rate", "udp200-egress80", DEVICE),
    ],
)
def test_headroom_is_better_wherever_it_is_the_question(
    finding, metric, workload, device
):
    one = finding(HEADROOM, metric, workload, device)
    assert (one.verdict, one.qualifiers[0]) == ("better", "material")


def test_the_control_of_headroom_has_a_small_real_loss_and_says_so(finding):
    one = finding(HEADROOM, "throughput", "tcp-egress16")
    change = one.comparison.change
    assert (one.role, one.verdict, one.qualifiers[0]) == (
        "control",
        "worse",
        "at most small",
    )
    assert -0.01 < change.low < change.high < 0
    assert "control, no gain" in one.sentence
    assert "is a real loss and far below the margin of 1 %" in one.sentence


def test_what_headroom_removes_is_gone_from_the_profile(assessed):
    (one,) = [
        one
        for one in assessed(HEADROOM).explanations
        if one.metric.startswith("profile_share:")
    ]
    before, after = (one.values[name] for name in ("baseline", "patched"))
    assert one.symbol == "pskb_expand_head"
    assert 0.03 < before[0] < 0.05
    assert after == (0.0,)


def test_headroom_is_accepted_with_every_guard_answered(assessed):
    found = assessed(HEADROOM)
    assert found.decision == "accept"
    assert {one.decision.value for one in found.devices} == {"accept"}
    guards = {one.guarded.value for one in found.findings if one.guarded}
    assert guards == {"safe", "harm, within margin"}


def test_what_the_mail_says_of_headroom_stands_apart_and_decides_nothing(
    assessed, finding
):
    found = assessed(HEADROOM)
    modem = "mt7621-qmi-modem (published)"
    one = finding(HEADROOM, "throughput", "tcp-routed", modem)
    rounded = one.comparison.rounded
    assert (one.verdict, one.comparison.change) == ("not assessable", None)
    assert (rounded.value, rounded.low) == pytest.approx((1.5, 1.0))
    assert rounded.high == pytest.approx(350 / 150)
    assert not any("published" in one.device for one in found.devices)
    assert found.decision == "accept"
    assert "published" not in found.sentence
    assert "tcp-routed" not in found.sentence
    dongle = finding(
        HEADROOM, "throughput", "tcp-routed", "mt7621-usb-lan-dongle (published)"
    )
    assert dongle.comparison.baseline.mean == 300e6
    assert dongle.comparison.patched is None
    rate, same = (one.data[0] for one in claims.check(found))
    assert rate.outcome == "follows"
    assert (same.outcome, same.why) == (
        "cannot be checked",
        "1 and 1 units: no test of equality",
    )


def test_orphaning_is_vetoed_for_the_loss_it_causes(assessed, finding):
    study = "qmi_wwan/tx-skb-orphan"
    loss = finding(study, "loss", "udp-up-20mbit")
    assert loss.guarded == "broken"
    assert loss.comparison.change.value == pytest.approx(0.91, abs=0.01)
    assert assessed(study).decision == "veto"
    headline = assessed(study).sentence
    assert headline.startswith("Veto: it costs more than was accepted")
    assert "loss on udp-up-20mbit: worse by +91" in headline
    assert "(0 to 91.27 %)" in headline


def test_orphaning_sends_thirteen_times_as_much_and_delivers_no_more(finding):
    study = "qmi_wwan/tx-skb-orphan"
    sent = finding(study, "send_rate", "udp-up-20mbit").comparison
    arrived = finding(study, "throughput", "udp-up-20mbit")
    assert 1 + sent.change.value == pytest.approx(13, abs=0.5)
    assert arrived.verdict == "saturated"
    assert arrived.comparison.change.high < 0.001


def test_a_module_is_equivalent_to_itself(assessed, finding):
    study = "qmi_wwan/same-module"
    one = finding(study, "throughput", "tcp-egress80")
    assert one.verdict == "equivalent"
    assert assessed(study).decision == "accept"
    assert "No change, as claimed" in assessed(study).sentence


def test_a_module_measured_after_itself_is_confounded_and_never_worse(
    assessed, finding
):
    study = "qmi_wwan/same-module-sequential"
    one = finding(study, "throughput", "tcp-egress80")
    assert one.comparison.change.high < 0
    assert one.verdict == "not assessable"
    assert one.qualifiers[0] == "confounded with time order"
    assert assessed(study).decision == "not yet"
    told = {doubt.caveat.code for doubt in assessed(study).doubts}
    assert {"sequential", "another-difference"} <= told


def test_a_prefetch_where_there_is_no_cache_is_rejected(assessed, finding):
    study = "qmi_wwan/rx-prefetch"
    assert finding(study, "throughput", "tcp-egress80").verdict == "equivalent"
    assert assessed(study).decision == "reject claim"


def test_a_null_on_a_noisy_machine_names_the_runs_it_takes(assessed, finding):
    study = "veth/txqueuelen"
    one = finding(study, "throughput", "tcp")
    assert one.verdict == "inconclusive"
    assert "for the margin of 2 % it takes about" in one.sentence
    assert "runs each in 1272 blocks" in one.sentence
    assert assessed(study).decision == "not yet"


@pytest.mark.parametrize("workload", ["tcp", "netperf"])
def test_gro_raises_throughput(finding, workload):
    one = finding("veth/gro", "throughput", workload)
    assert (one.verdict, one.qualifiers[0]) == ("better", "material")


def test_gro_waits_for_the_one_guard_that_is_open(assessed):
    found = assessed("veth/gro")
    open_ = [one for one in found.findings if one.guarded == "unresolved"]
    assert [one.planned.metric.name for one in open_] == ["transaction_rate"]
    assert found.decision == "not yet"


#: Published study and workload -> ratio of the two values, and the bounds that their
#: printed digits leave.
PUBLISHED = [
    (("sis900/tx-skb-orphan", "tcp-stream"), 250.8, (227.9, 278.8)),
    (("sis900/tx-completion", "tcp-stream"), 248.2, (229.0, 270.8)),
    (("bgmac/rx-buffer-size", "nat"), 0.3867, (0.3848, 0.3887)),
    (("bgmac/prefetch", "nat"), 1.0, (0.9958, 1.0042)),
    (("tmi/buffer-pool", "tcp-p5"), 1.489, (1.368, 1.613)),
]


@pytest.mark.parametrize(("where", "ratio", "bounds"), PUBLISHED)
def test_one_published_value_each_is_not_assessable(
    assessed, finding, where, ratio, bounds
):
    study, workload = where
    one = finding(study, "throughput", workload)
    rounded = one.comparison.rounded
    assert (one.verdict, assessed(study).decision) == ("not assessable", "not yet")
    assert rounded.value == pytest.approx(ratio, rel=5e-4)
    assert (rounded.low, rounded.high) == pytest.approx(bounds, rel=5e-4)


@pytest.mark.parametrize("study", ["sis900/tx-skb-orphan", "sis900/tx-completion"])
def test_udp_flow_control_was_not_measured_and_is_open(assessed, finding, study):
    assert finding(study, "loss", "udp-stream").guarded == "not measured"
    assert "loss on udp-stream: not measured" in assessed(study).sentence


def test_the_tests_of_the_completion_fix_were_of_unequal_size(assessed):
    (told,) = [
        one.caveat.text
        for one in assessed("sis900/tx-completion").doubts
        if one.caveat.code == "another-difference"
    ]
    assert told.endswith("baseline: 2000000; patched: 10000000")


def test_sixty_percent_of_bgmac_follows_only_as_about(assessed):
    exact, about = claims.check(assessed("bgmac/rx-buffer-size"))
    assert (exact.mail.outcome, about.mail.outcome) == ("does not follow", "follows")
    assert exact.mail.found.value == pytest.approx(-0.613, abs=5e-4)


def test_the_claims_of_tmi_follow_and_its_counts_are_doubted(assessed):
    rate, time = claims.check(assessed("tmi/buffer-pool"))
    assert (rate.mail.outcome, time.mail.outcome) == ("follows", "follows")
    assert "704.9 ns -> 428.8 ns" in time.mail.why
    assert "+48.9 %" in rate.mail.why
    told = {
        one.caveat.code: one.caveat.text for one in assessed("tmi/buffer-pool").doubts
    }
    assert told["calls-per-bit"].startswith(
        "3.05 times as many allocations for 1.49 times the bits"
    )


def test_a_tiny_p_between_two_images_is_no_effect_of_the_source(assessed, finding):
    study = "bgmac/code-placement"
    one = finding(study, "throughput", "nat-commit")
    assert one.comparison.p_value < 1e-12
    assert one.comparison.change.value == pytest.approx(0.0432, abs=0.0005)
    assert "not distinguishable from code placement: +4.32 %" in one.sentence
    floor = layout_floor(assessed(study).material, one.comparison.question)
    assert floor.builds == 8
    assert floor.between == pytest.approx(0.0141, abs=0.0002)
    assert floor.within == pytest.approx(0.0022, abs=0.0001)
    assert "not distinguishable from code placement" in assessed(study).sentence


def test_the_same_image_differs_by_half_a_percent_from_day_to_day(finding):
    study = "bgmac/code-placement"
    again = finding(study, "throughput", "nat-same-build", variant="again").comparison
    assert again.change.value == pytest.approx(-0.0050, abs=0.0002)
    assert again.p_value == pytest.approx(0.015, abs=0.002)


def test_the_cheaper_allocation_of_the_pool_is_told_beside_the_loss(assessed, finding):
    study = "tmi_lab/buffer-pool"
    one = finding(study, "alloc_time", "tcp-p5")
    assert (one.verdict, one.qualifiers[0]) == ("better", "material")
    assert 1 + one.comparison.change.value == pytest.approx(0.13, abs=0.002)
    headline = assessed(study).sentence
    assert "throughput on tcp-p5: worse by -6.54 %" in headline
    assert "yet alloc_time on tcp-p5: better by -87.03 %" in headline


def test_with_gro_the_modes_of_the_pool_study_are_counted(assessed):
    (told,) = [
        one.caveat.text
        for one in assessed("tmi_lab/buffer-pool").doubts
        if one.caveat.code == "modes-within-runs"
    ]
    assert told.startswith("two modes within runs, near 183.5 Mbit/s and 357.1 Mbit/s")
    assert "2 of 6 baseline, 3 of 6 patched intervals in the upper one" in told
    assert "2 of 4 runs were in both" in told


@pytest.mark.parametrize("name", STUDIES)
def test_every_file_that_is_not_used_is_known(assessed, name):
    left = [one for one in assessed(name).study.leftovers if not one.broken]
    odd = {
        one.path
        for one in left
        if one.path.rpartition("/")[2].partition(".")[2] not in UNREAD
        and not (name.endswith("orphan") and ".tc_s_qdisc.wwan.after.json" in one.path)
    }
    assert odd == set()


@pytest.mark.parametrize("name", STUDIES)
def test_no_shipped_file_is_broken(assessed, name):
    broken = [one.path for one in assessed(name).study.leftovers if one.broken]
    assert broken == []
