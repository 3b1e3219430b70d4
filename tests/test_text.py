"""The block for the mailing list: what it says, and that git leaves it alone."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchstudy.errors import StudyError
from patchstudy.findings import assess
from patchstudy.report import answer
from patchstudy.report import text as text_module
from patchstudy.report.markdown import markdown
from patchstudy.report.table import as_markdown
from patchstudy.report.text import WIDTH, Paper, ascii_only, text
from patchstudy.study import open_study

PAPER = Paper(width=WIDTH)
DATA = Path(__file__).parents[1] / "data"
SHIPPED = sorted(
    path.parent.relative_to(DATA).as_posix() for path in DATA.glob("*/*/study.toml")
)
HOSTILE = [
    pytest.param("caf\u00e9 \U0001f600 \u4e2d", id="unicode"),
    pytest.param("a\nb\u2028c\td", id="line breaks"),
    pytest.param("a\x1b[31mb\x00\x7f\u202e", id="control characters"),
    pytest.param("f" * 64, id="sha256"),
    pytest.param("0123456789ABCDEF0123", id="upper-case commit"),
    pytest.param("e" * 200, id="hex over several lines"),
    pytest.param("--- a/b", id="patch"),
    pytest.param("---", id="three dashes"),
    pytest.param("diff --git a/b b/b", id="diff"),
    pytest.param("Index: b", id="index"),
    pytest.param("#x", id="comment"),
    pytest.param("From me", id="mbox"),
    pytest.param("From: me", id="header"),
    pytest.param("> x", id="quote"),
    pytest.param("<b>x</b> *y* $z$ \\n", id="markup"),
    pytest.param("--- " + "x" * 68, id="patch of a full line"),
]
DESIGN = """\
question = "Is it faster?"
unit = "run"
block = "block"
[[metrics]]
name = "throughput"
role = "primary"
"""
GROUPED = """\
question = "Which variant is faster?"
alpha = 0.1
patched = ["one", "two"]
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
"""


def assert_laws(block):
    """No line is taken for a part of a patch, of a mail, or for a commit."""
    assert block.endswith("\n")
    assert not block.endswith("\n\n")
    for line in block.removesuffix("\n").split("\n"):
        assert len(line) <= WIDTH
        assert line.isascii()
        assert line.isprintable()
        assert line == line.rstrip()
        assert not re.match(r"---|diff |Index:|#|From[ :]|>", line)
        assert not re.search(r"\b[0-9a-f]{12,40}\b", line, re.IGNORECASE)


def git(folder, *words, given=None):
    """Return what git prints in a folder, without the user's own settings."""
    environment = {
        "PATH": "/usr/bin:/bin:/usr/local/bin",
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        env=environment,
        input=given,
        capture_output=True,
        check=True,
    )
    return done.stdout


@pytest.fixture
def repository(tmp_path):
    """Return a git repository with one commit, or skip."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed: mail of a commit not tested")
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "Begin")
    return folder


@pytest.mark.parametrize(
    "name",
    ["qmi_wwan/tx-skb-orphan", "qmi_wwan/same-module-sequential", "veth/txqueuelen"],
)
def test_the_block_of_a_shipped_study(name, assessed, golden):
    golden(text(assessed(name)), f"text/{name.replace('/', '-')}.txt")


@pytest.mark.parametrize("name", SHIPPED)
def test_the_block_keeps_the_laws(name, assessed):
    assert_laws(text(assessed(name)))


@pytest.mark.parametrize("name", SHIPPED)
def test_the_block_says_what_was_decided_and_what_was_not_measured(name, assessed):
    assessment = assessed(name)
    lines = text(assessment).splitlines()
    words = " ".join(lines)
    assert words.startswith(f"{assessment.study.title}: {assessment.decision}")
    # one published value each is no comparison
    compared = any(one.comparison.change for one in assessment.findings)
    design = "unit of analysis " if compared else "nothing could be compared."
    assert any(line.startswith(f"Design: {design}") for line in lines)
    for one in assessment.study.design.not_measured:
        assert one in words


#: What checkpatch.pl says of a commit message, as far as a block could do wrong.
CHECKPATCH = {
    "COMMIT_LOG_LONG_LINE": r".{76}",
    "GIT_COMMIT_ID": r"(?i)\b(?:commit\s+)?[0-9a-f]{12,40}\b",
    "GERRIT_CHANGE_ID": r"^\s*Change-Id:",
    "BAD_SIGN_OFF": r"(?i)^\s*[a-z0-9_-]+-by:",
    "COMMIT_LOG_USE_LINK": r"^\s*\[?\d*\]?\s*https?://",
    "DIFF_IN_COMMIT_MSG": r"^\s*(?:diff\b|---\s+a/|\+\+\+\s+b/|@@ -)",
    "trailing blanks": r"[ \t]$",
    "tabs": r"\t",
}
FORMS = [text_module.text, text_module.cover, text_module.trailer]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SHIPPED)
def test_checkpatch_has_nothing_to_say(name, form, assessed):
    for line in form(assessed(name)).splitlines():
        for rule, pattern in CHECKPATCH.items():
            assert not re.search(pattern, line), (rule, line)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("width", [60, 72, 100])
def test_no_line_is_longer_than_asked(form, width, assessed):
    block = form(assessed("qmi_wwan/tx-skb-orphan"), width=width)
    assert max(map(len, block.splitlines())) <= width
    assert width - 12 < max(map(len, block.splitlines()))


def test_a_width_of_no_use_is_refused(assessed):
    with pytest.raises(StudyError, match="a width of 20 columns; give 60 to 100"):
        text(assessed("qmi_wwan/tx-skb-orphan"), width=20)


@pytest.mark.parametrize("name", SHIPPED)
def test_git_reads_every_trailer(name, assessed, repository):
    block = text_module.trailer(assessed(name))
    assert_laws(block)
    message = f"driver: make it faster\n\nBecause.\n\n{block}Signed-off-by: A <a@b.c>\n"
    told = git(repository, "interpret-trailers", "--parse", given=message.encode())
    names = [line.partition(":")[0] for line in told.decode().splitlines()]
    facts = [one for one in names if one.startswith("Perf-")]
    assert facts == re.findall(r"^(Perf-[a-z-]+):", block, re.MULTILINE)
    assert facts[0] == "Perf-decision"
    assert {"Perf-design", "Perf-not-measured"} <= set(facts)
    changes = [one.comparison.change for one in assessed(name).findings]
    assert ("Perf-change" in facts) is any(changes)  # none of one published value each
    assert names[-1] == "Signed-off-by"


def test_a_cover_letter_begins_with_the_verdict_and_ends_with_the_way_back(assessed):
    block = text_module.cover(assessed("qmi_wwan/qmap-headroom"))
    assert_laws(block)
    lines = block.splitlines()
    assert lines[:2] == ["Performance", "==========="]
    assert lines[3].startswith(
        "Supported where it was measured: better in all 3 primary comparisons"
    )
    assert "Made by: patchstudy report --study qmi_wwan/qmap-headroom" in block


def test_markdown_says_the_same_as_the_block(assessed):
    assessment = assessed("veth/gro")
    told = markdown(assessment)
    assert told.startswith("### veth/gro\n\n**NOT YET.** Not yet decided: better in")
    assert (
        "| tcp on x86\\-vm\\-6\\.18 | throughput \\[Gbit/s\\] \\(primary\\) |" in told
    )
    for one in (*answer.not_measured(assessment), *answer.doubts(assessment)):
        words = one if isinstance(one, str) else one.sentence
        assert as_markdown(words) in told


def test_markup_from_a_study_stays_text_in_markdown(made):
    told = markdown(assess(open_study(made(device="<b>x</b>|[y](z)", workload="*t*"))))
    assert "<b>" not in told
    assert r"\<b\>x\</b\>\|\[y\]\(z\)" in told


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("form", FORMS[:2])
def test_git_carries_the_block_unchanged(name, form, assessed, repository):
    message = f"driver: make it faster\n\n{form(assessed(name))}"
    (repository / "driver.c").write_text("int x;\n")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-F", "-", given=message.encode())
    mail = git(repository, "format-patch", "--stdout", "-1")
    git(repository, "mailinfo", "message", "patch", given=mail)
    body = (repository / "message").read_text()
    assert body == message.partition("\n\n")[2]
    git(repository, "reset", "--quiet", "--hard", "HEAD~")
    git(repository, "am", "--quiet", given=mail)
    assert git(repository, "log", "-1", "--format=%B").decode() == f"{message}\n"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_keeps_the_laws(name, made):
    folder = made(device=name, workload=name)
    assert_laws(text(assess(open_study(folder))))


@given(st.text(max_size=200), st.text(max_size=200))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_any_words_keep_the_laws(first, second):
    lines = PAPER.wrapped(f"{first} --- {second}")
    block = "\n".join(text_module._HASH.sub(r"\1..", line) for line in lines)
    assert_laws(block.rstrip("\n") + "\n")


@given(st.text())
def test_ascii_only_is_one_printable_line_and_stable(words):
    line = ascii_only(words)
    assert line.isascii()
    assert line == "" or line.isprintable()
    assert ascii_only(line) == line


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("3.1 \u00b1 0.2 \u00b5s", "3.1 +/- 0.2 us"),
        ("caf\u00e9 \u2192 \u2260", "cafe -> ="),
        ("\u4e2d\x1b", r"\u4e2d\x1b"),
        ("  a\r\n b ", "a b"),
    ],
)
def test_ascii_only(words, line):
    assert ascii_only(words) == line


def test_a_line_that_is_indented_for_safety_loses_nothing():
    words = "--- " + "x" * 68
    assert "".join(PAPER.wrapped(words)).split() == ["---", "x" * 68]


def test_a_long_name_of_a_metric_stands_above_its_numbers(made):
    name = "event:" + "rx_very_long_counter_name_" * 4
    folder = made(
        design='question = "?"\nunit = "run"\n'
        f'[[metrics]]\nname = "{name}"\nrole = "diagnostic"\n'
        '[[metrics]]\nname = "throughput"\nrole = "primary"\n'
    )
    table = (folder / "measurements.csv").read_text()
    folder.joinpath("measurements.csv").write_text(
        table.replace("throughput,Mbit/s", f"{name},1") + table.partition("\n")[2]
    )
    block = text(assess(open_study(folder)))
    assert_laws(block)
    assert f"  {name[:70]}\n" in block


def test_a_long_interval_takes_the_blanks_of_other_columns(assessed):
    lines = text(assessed("qmi_wwan/qmap-headroom")).splitlines()
    (row,) = (one for one in lines if "packet_rate kpacket/s" in one)
    assert row.split()[2:] == ["37.79", "43.52", "+15.18%", "[+14.71,+15.65]", "better"]
    assert len(row) <= 72


def test_several_variants_are_told_apart_with_the_level_of_the_study(made):
    folder = made(design=GROUPED)
    table = (folder / "measurements.csv").read_text()
    (folder / "measurements.csv").write_text(
        table.replace(",patched,", ",one,")
        + "".join(
            line.replace(",baseline,", ",two,") + "\n"
            for line in table.splitlines()
            if ",baseline," in line
        )
    )
    block = text(assess(open_study(folder)))
    assert "router, one, tcp, 6 runs each:" in block
    assert "router, two, tcp, 6 runs each:" in block
    assert "90% CI" in block
    assert "router, one: throughput on tcp" in " ".join(block.split())


def test_a_change_that_a_ceiling_cuts_off_is_at_least_so_much(made):
    design = f'{DESIGN}ceiling = "110.5 Mbit/s"\n'
    block = " ".join(text(assess(open_study(made(design=design)))).split())
    assert "better>=" in block
    assert "better>=: better by at least the near end, a ceiling hides" in block


def test_a_placebo_named_beside_patched_is_told_apart(made):
    folder = made(design='placebo = "layout"\n' + DESIGN)
    table = (folder / "measurements.csv").read_text()
    (folder / "measurements.csv").write_text(
        table
        + "".join(
            line.replace(",baseline,", ",layout,") + "\n"
            for line in table.splitlines()
            if ",baseline," in line
        )
    )
    block = " ".join(text(assess(open_study(folder))).split())
    assert "router, patched, tcp, 6 runs each in 6 blocks:" in block
    assert "router, layout, tcp, 6 runs each in 6 blocks:" in block


def test_the_control_says_that_a_small_real_loss_is_no_gain(assessed):
    (control,) = (
        one
        for one in assessed("qmi_wwan/qmap-headroom").findings
        if one.role == "control" and one.planned.metric.name == "throughput"
    )
    assert "no gain: " in control.sentence
    assert "is a real loss and far below the margin of 1 %" in control.sentence


def test_a_word_broken_at_the_edge_leaves_no_blank():
    lines = PAPER.wrapped(f"{'a' * 71} {'b' * 80}")
    assert lines[0] == "a" * 71
