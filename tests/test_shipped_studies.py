"""What must be seen in the shipped studies, and what must not."""

import pytest

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
STUDIES = [
    "e1000/rx-buffer-size",
    "e1000/rx-prefetch",
    HEADROOM,
    "qmi_wwan/rx-prefetch",
    "qmi_wwan/same-module",
    "qmi_wwan/same-module-sequential",
    "qmi_wwan/tx-skb-orphan",
    "tmi_lab/buffer-pool",
    "tmi_lab/buffer-pool-same-allocator",
    "veth/gro",
    "veth/txqueuelen",
]
#: Study, metric and workload -> verdict, first qualifier, decision, and the range in
#: which both ends of the interval of the change lie.
EXPECTED = [
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

    def of(study, metric, workload, device=None):
        (one,) = [
            one
            for one in assessed(study).findings
            if one.planned.metric.name == metric
            and one.comparison.question.workload == workload
            and one.comparison.question.device == (device or one_device(study))
        ]
        return one

    def one_device(study):
        return "x86-vm-6.18" if study.startswith("veth") else DEVICE

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
    (one,) = assessed(HEADROOM).explanations
    before, after = (one.evidence.shares[name] for name in ("baseline", "patched"))
    assert one.evidence.symbol == "pskb_expand_head"
    assert 0.03 < before[0] < 0.05
    assert after == (0.0,)


def test_headroom_is_accepted_with_every_guard_answered(assessed):
    found = assessed(HEADROOM)
    assert found.decision == "accept"
    assert {one.decision.value for one in found.devices} == {"accept"}
    guards = {one.guarded.value for one in found.findings if one.guarded}
    assert guards == {"safe", "harm, within margin"}


def test_orphaning_is_vetoed_for_the_loss_it_causes(assessed, finding):
    study = "qmi_wwan/tx-skb-orphan"
    loss = finding(study, "loss", "udp-up-20mbit")
    assert loss.guarded == "broken"
    assert loss.comparison.change.value == pytest.approx(0.91, abs=0.01)
    assert assessed(study).decision == "veto"
    headline = assessed(study).sentence
    assert headline.startswith("Veto: a guard is broken")
    assert "loss on udp-up-20mbit: broken: +91" in headline


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
    assert "the margin of 2 % needs about" in one.sentence
    assert "runs)" in one.sentence
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
