"""What a report shows: every section of every study, also where there is nothing."""

import inspect
from pathlib import Path

import pytest

from patchstudy.findings import assess
from patchstudy.report import answer, figure_tables, sections, why
from patchstudy.report.lead import Intervals, Marks
from patchstudy.report.table import Linked, Note, Table, Vector
from patchstudy.study import Role, open_study

DATA = Path(__file__).parents[1] / "data"
SHIPPED = sorted(
    path.parent.relative_to(DATA).as_posix() for path in DATA.glob("*/*/study.toml")
)
SECTIONS = {
    name: function
    for module in (sections, why)
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if function.__module__.startswith(module.__name__)
    and not name.startswith("_")
    and name != "show"
}


def parts(name, assessment):
    """Return the parts of a section as a list."""
    made = SECTIONS[name](assessment)
    return list(made) if isinstance(made, tuple) else [made]


@pytest.fixture
def bare(made):
    """Return a study with one metric from a table, assessed: no guards, no profile."""
    return assess(open_study(made()))


def test_there_are_sections():
    assert {"verdict", "guards", "forest", "all_runs", "provenance"} <= set(SECTIONS)
    assert len(SECTIONS) > 15


@pytest.mark.parametrize("study", SHIPPED)
def test_every_section_has_something_to_show(study, assessed):
    for name in SECTIONS:
        shown = parts(name, assessed(study))
        assert shown, name
        for part in shown:
            assert isinstance(part, sections.Part), name
            assert_described(part)


def assert_described(part):
    if isinstance(part, Vector):
        assert part.alt.strip()
        assert part.caption.strip()
        assert part.svg.lstrip().startswith(b"<")
    elif isinstance(part, Table):
        assert part.caption.strip()
        assert part.rows
    elif isinstance(part, Marks | Intervals):
        assert part.items
    else:
        assert part.text.strip()


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("guards", "No guard is declared: what the patch costs is unknown."),
        ("guard_runs", "No guard is harmed or unresolved."),
        ("course", "No tool printed intervals."),
        ("treatment", "No fact of the runs is recorded, so this cannot be told."),
        ("mechanism", "The study names no mechanism that was profiled or measured."),
        (
            "explained",
            "No symbol is named and no profile was taken: nothing can be predicted.",
        ),
        ("profile", "There is no profile of both variants."),
        ("costs", "There is no profile of both variants."),
        ("flame", "There is no profile of both variants."),
        ("function_calls", "No calls were counted."),
        (
            "call_costs",
            "No function has durations of single calls, or a histogram of them.",
        ),
        ("counters", "No counter was read in both variants."),
        ("cpus", "No tool tells the load of single CPUs."),
        ("exploratory", "No further metric was measured."),
        ("claims", "No claim of a mail is recorded in study.toml."),
    ],
)
def test_a_section_with_nothing_to_show_says_so(section, words, bare):
    assert [part.text for part in parts(section, bare)] == [words]


def test_a_bare_study_has_all_other_sections(bare):
    for name in SECTIONS:
        for part in parts(name, bare):
            assert_described(part)


def test_units_that_are_too_few_are_shown_as_such(made):
    folder = made()
    lines = (folder / "measurements.csv").read_text().splitlines(keepends=True)
    (folder / "measurements.csv").write_text("".join(lines[:3]))
    assessment = assess(open_study(folder))
    for name in SECTIONS:
        assert parts(name, assessment)
    (note,) = parts("forest", assessment)
    assert note.text == "Nothing could be compared."


@pytest.mark.parametrize(
    "name", [r"<b>x</b>$\frac$", "a\x1b[31m\nb\U0001f600", "$" + "x" * 200]
)
def test_a_hostile_name_breaks_no_section(name, made):
    assessment = assess(open_study(made(device=name, workload=name)))
    for section in SECTIONS:
        for part in parts(section, assessment):
            bundle = part._repr_mimebundle_()
            data = bundle[0] if isinstance(bundle, tuple) else bundle
            markup = data.get("text/html", "") + data.get("image/svg+xml", "")
            assert "<b>x" not in markup
            assert "\x1b" not in markup


def test_the_level_of_the_study_stands_in_the_tables(made):
    folder = made()
    toml = folder / "study.toml"
    toml.write_text(f"alpha = 0.1\n{toml.read_text()}")
    (table,) = parts("changes", assess(open_study(folder)))
    assert "Change [90 %]" in [column.name for column in table.columns]


def test_a_difference_in_another_unit_is_not_drawn_in_points(made):
    folder = made()
    for name in ("study.toml", "measurements.csv"):
        path = folder / name
        path.write_text(
            path.read_text().replace("throughput,Mbit/s", "retransmits,1")
            .replace('"throughput"', '"retransmits"')
            .replace('margin = "2 %"', "")
        )  # fmt: skip
    (finding,) = assess(open_study(folder)).findings
    row = figure_tables._forest_row(finding)
    assert row["axis"] == "count"
    assert row["change"] == pytest.approx(10, rel=0.05)


def test_a_treatment_that_differs_as_declared_is_told_from_one_that_does_not(assessed):
    (table,) = parts("treatment", assessed("qmi_wwan/tx-skb-orphan"))
    meaning = {row[0]: row[-1] for row in table.rows}
    assert meaning["module"] == "differs, as declared"
    assert meaning["iperf3 version"] == "same"


def test_a_claim_stands_beside_what_was_found(made):
    folder = made()
    toml = folder / "study.toml"
    toml.write_text(
        f'{toml.read_text()}[[claims]]\ntext = "10 % faster"\nmetric = "throughput"\n'
        'change = "+10 %"\n[[claims]]\ntext = "less loss"\nmetric = "loss"\n'
    )
    (table,) = parts("claims", assess(open_study(folder)))
    assert table.rows[0][:3] == ("10 % faster", "throughput", "+10 %")
    assert table.rows[0][3].startswith("cannot be checked (the mail's own values are")
    assert table.rows[0][4].startswith("router, tcp: follows (+10.0")
    assert table.rows[1][2:] == (
        "-",
        *["cannot be checked (the claim states no change)"] * 2,
    )


def test_the_digests_shown_are_those_of_the_results(assessed):
    from patchstudy.report.results import digest, results

    assessment = assessed("qmi_wwan/same-module")
    said = " ".join(
        part.text for part in parts("provenance", assessment) if isinstance(part, Note)
    )
    content = results(assessment)
    assert f"(report.json): sha256 {digest(assessment)}." in said
    assert f"All inputs: sha256 {content['provenance']['inputs_sha256']}." in said


def test_second_opinions_stand_beside_the_estimate(made):
    folder = made()
    path = folder / "measurements.csv"
    toml = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(toml.replace('block = "block"\n', ""))
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:7]))
    _, table = parts("sensitivity", assess(open_study(folder)))
    (row,) = table.rows
    assert row[2].startswith("+")
    assert row[-1] == "no rank confirmation at n=3 and 3: p is never below 0.1"


def test_show_shows_one_part_or_several(capsys):
    sections.show(Note("text", "one"))
    sections.show((Note("text", "two"), Note("text", "three")))
    assert capsys.readouterr().out.count("Note(") == 3


@pytest.mark.parametrize("study", SHIPPED)
def test_the_first_screen_tells_all_in_few_words(study, assessed):
    assessment = assessed(study)
    shown = sections.answer(assessment)
    kinds = [type(part).__name__ for part in shown]
    primary = [one for one in assessment.findings if one.role is Role.PRIMARY]
    drawn = any(one.comparison.patched for one in primary)
    guarded = any(one.role is Role.GUARD for one in assessment.findings)
    expected = ["Intervals"] * drawn + ["Marks"] * guarded
    assert kinds[:2] == ["Note", "Note"]
    assert [one for one in kinds if one != "Note"] == expected
    verdict = sections.verdict(assessment)
    assert verdict.title == str(assessment.decision).upper()
    assert len(verdict.text) < 350
    words = " ".join(part.text for part in shown if isinstance(part, Note))
    for one in assessment.study.design.not_measured:
        assert one in words


def test_a_single_value_each_is_shown_without_a_picture(assessed):
    shown = sections.answer(assessed("sis900/tx-skb-orphan"))
    (found,) = (part for part in shown if isinstance(part, Intervals))
    (one,) = found.items
    assert (one.values, one.places) == ("0.05 to 12.54 Mbit/s", None)
    assert (one.runs, found.caption) == ("1 run each", "Values: baseline to patched.")
    notes = {part.title: part.text for part in shown if isinstance(part, Note)}
    assert "as posted on netdev in June 2019" in notes["Published for:"]
    assert notes["What would help:"].startswith("loss: measure it, or name ")


def test_further_reasons_stand_in_the_verdict_where_they_fit(assessed):
    told = sections.verdict(assessed("sis900/tx-skb-orphan")).text
    assert "; loss on udp-stream: not measured (no run has" in told
    told = sections.verdict(assessed("bgmac/code-placement")).text
    assert told.endswith("; 1 more such reason below.")


@pytest.mark.parametrize(
    ("study", "words"),
    [
        (
            "qmi_wwan/qmap-headroom",
            "Supported where it was measured: better in all 3 primary comparisons, ",
        ),
        ("qmi_wwan/same-module", "No change was claimed, and none was found, on "),
        (
            "qmi_wwan/tx-skb-orphan",
            "It costs more than was accepted, on qemu-tcg-icount-250mips: loss",
        ),
        (
            "veth/gro",
            "Not yet decided: better in both primary comparisons, on x86-vm-6.18, by +",
        ),
        ("qmi_wwan/rx-prefetch", "The claim is not supported, on qemu-tcg-icount-250"),
    ],
)
def test_the_headline(study, words, assessed):
    assert answer.headline(assessed(study)).startswith(words)


def test_an_accepted_null_says_what_was_accepted(assessed):
    words = answer.decision_in_words(assessed("qmi_wwan/same-module"))
    assert words == "accept: no change claimed, none found"
    assert answer.decision_in_words(assessed("qmi_wwan/qmap-headroom")) == "accept"


def test_the_worst_place_of_a_guard_gives_its_mark(assessed):
    marks = answer.marks(assessed("qmi_wwan/qmap-headroom"))
    moods = {one.name: one.mood for one in marks.items}
    assert moods["cpu_per_byte"] == "plain"
    assert moods["retransmits"] == moods["errors"] == "good"
    assert marks.items[0].word == "worse in 1 of 3 places, less than the margin"
    details = [one.detail for one in marks.items]
    assert details == [
        "tcp-egress16: 60.86 to 61.12 ns/byte, +0.44 % [+0.31, +0.56]; margin 1 %",
        "none in any run; harm of 0.1 pp excluded",
        "udp200-egress80: 1.283 to 1.021 % of pkts; harm of 0.1 pp excluded",
        "100.0 % in both; harm of 2 pp excluded",
    ]


def test_a_guard_without_any_event_says_so_once(assessed):
    (mark,) = answer.marks(assessed("qmi_wwan/same-module-sequential")).items
    assert (mark.word, mark.detail) == ("unresolved", "none in any run; margin 0.1 pp")


def test_a_row_of_the_first_screen_gives_both_values(assessed):
    changed = answer.intervals(assessed("qmi_wwan/tx-skb-orphan"))
    rate, cost = changed.items
    assert (rate.values, cost.values) == (
        "19.58 to 19.57 Mbit/s",
        "191.9 to 408.7 ns/byte",
    )
    assert rate.verdict == "no change could show: both variants reach the ceiling"
    assert cost.where.endswith("; judged in place of the rate, which is at its limit")


def test_the_first_screen_says_what_the_devices_are(assessed):
    notes = sections.answer(assessed("qmi_wwan/qmap-headroom"))
    (told,) = [one for one in notes if getattr(one, "title", "") == "Measured on:"]
    assert told.text.count("(emulated)") == 2
    assert "published" not in told.text


@pytest.mark.parametrize("study", SHIPPED)
def test_every_number_leads_to_its_runs_and_every_run_to_its_file(study, assessed):
    assessment = assessed(study)
    tables = sections.behind(assessment)
    names = {f"#{table.name}" for table in tables}
    (changes,) = parts("changes", assessment)
    for row in changes.rows:
        assert row[6].links[0][1] in names
    files = assessment.study.files
    for row in (row for table in tables for row in table.rows):
        assert isinstance(row[-1], Linked)
        for text, target in row[-1].links:
            path = Path(target).relative_to(assessment.study.folder.as_posix())
            assert (assessment.study.folder / path).is_file()
            assert files[path.as_posix()].startswith(text.rpartition(" ")[2])


@pytest.mark.parametrize("study", SHIPPED)
def test_the_runs_behind_a_number_give_the_number(study, assessed):
    from patchstudy.report.ledger import lines

    assessment = assessed(study)
    for one in assessment.findings:
        question = one.comparison.question
        if one.role != "primary" or question.problem:
            continue
        found = [
            line.measured[question.planned.metric.name]
            for line in lines(assessment)
            if (line.device, line.workload) == (question.device, question.workload)
            and line.variant == "baseline"
        ]
        assert len(found) == one.comparison.n_baseline
        assert sum(found) / len(found) == pytest.approx(
            one.comparison.baseline.mean, 0.02
        )


def test_what_is_known_stands_before_the_guard_that_is_open(assessed):
    told = answer.headline(assessed("veth/gro"))
    assert " by +46 % and +53 %; but transaction_rate on netperf: unresolved: " in told


def test_what_was_sent_stands_beside_a_loss(assessed):
    marks = answer.marks(assessed("qmi_wwan/tx-skb-orphan"))
    (loss,) = (one for one in marks.items if one.name == "loss")
    assert loss.detail == (
        "udp-up-20mbit: 0 to 91.27 %, +91.269 pp [+91.266, +91.273]; margin 0.5 pp; "
        "sent were 19.74 to 257.9 Mbit/s"
    )


def test_code_placement_is_told_and_drawn_where_it_hides_a_change(assessed):
    found = answer.intervals(assessed("bgmac/code-placement"))
    verdicts = {one.verdict for one in found.items}
    assert "inconclusive, margin 2 %; code placement alone may make 4.9 %" in verdicts
    *_, least, most = found.items[0].places
    assert least < found.items[0].places[0] < most
    assert "differ in code placement only. Values:" in found.caption


def test_no_section_claims_an_order_in_time_that_is_not_known(assessed):
    published, measured = assessed("bgmac/code-placement"), assessed("veth/txqueuelen")
    (vector,) = sections.all_runs(published)
    assert "in the order of the files, that in time is not known" in vector.caption
    assert "bands" not in vector.caption
    caption = sections.all_runs(measured)[0].caption
    assert "in order of time" in caption
    assert caption.endswith("of its variant, bands are blocks.")
    captions = [one.caption for one in sections.behind(published)]
    assert all("that in time is not known" in one for one in captions)
    assert "in order of time" in sections.behind(measured)[0].caption


def test_a_bottleneck_that_nothing_tells_is_one_line(assessed):
    note = sections.bottleneck(assessed("bgmac/code-placement"))
    assert note.text == "Not known: no load of a CPU and no ceiling is recorded."
    table = sections.bottleneck(assessed("veth/txqueuelen"))
    assert [row[2] for row in table.rows] == ["baseline", "patched"]
