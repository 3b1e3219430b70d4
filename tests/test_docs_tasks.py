"""The pages for users: every command in them is run as it stands there."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from patchstudy.cli import main

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted([*DOCS.glob("tasks/*.md"), DOCS / "notebooks.md"])
FIRST = DOCS / "tasks" / "first-report.md"
STUDY = Path("mydriver/mypatch")


def blocks(page, kind):
    """Return the code blocks of a kind, in order."""
    return re.findall(rf"```{kind}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


def commands(page):
    """Return the lines of all shell blocks as words, comments left out."""
    lines = "".join(blocks(page, "sh")).splitlines()
    words = [shlex.split(line, comments=True) for line in lines]
    return [one for one in words if one]


def ours(page):
    """Return the words after ``patchstudy`` of its commands on a page."""
    return [words[1:] for words in commands(page) if words[0] == "patchstudy"]


def test_there_is_a_page_a_task():
    names = {page.stem for page in PAGES}
    assert {"first-report", "reading-a-report", "add-a-device", "what-to-send"} <= names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_and_pictures_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
        assert (page.parent / target).is_file(), target


@pytest.fixture
def desk(tmp_path, monkeypatch, data):
    """Return a folder in which the commands of the first report were typed."""
    runs = data / "qmi_wwan" / "same-module" / "qemu-tcg-icount-250mips"
    for number in (1, 2, 3):
        for name, variant in (("old", "baseline"), ("new", "patched")):
            raw = min(runs.glob(f"{variant}/boot-0{number}/run-*/*.iperf3.json"))
            shutil.copy(raw, tmp_path / f"{name}-{number}.json")
    monkeypatch.chdir(tmp_path)
    for words in commands(FIRST):
        if words[0] != "patchstudy":
            subprocess.run(words, check=True)
    (design,) = blocks(FIRST, "toml")
    (STUDY / "study.toml").write_text(design, encoding="utf-8")
    return tmp_path


def run(page, capsys):
    """Run all our commands of a page; return what they printed, by command."""
    shown = {}
    for words in ours(page):
        assert main(words) in {0, 1}, words
        shown[" ".join(words)] = capsys.readouterr().out
    assert shown
    return shown


@pytest.mark.usefixtures("desk")
def test_the_first_report(capsys):
    shown = run(FIRST, capsys)
    assert "one boot" not in shown[f"check {STUDY}"]
    block = shown[f"text {STUDY}"]
    assert block.startswith(f"{STUDY}: ")
    assert "myrouter, tcp, 3 runs each in 3 boots:" in block
    assert "Not measured: UDP; latency under load." in " ".join(block.split())
    names = {path.name for path in Path("reports", STUDY).iterdir()}
    kinds = ("ipynb", "html", "pdf", "txt", "json")
    assert names == {".made.json", *(f"report.{kind}" for kind in kinds)}
    assert Path("reports/index.html").is_file()


@pytest.mark.usefixtures("desk")
def test_a_notebook_that_is_dropped_in_gets_a_page(capsys):
    page = DOCS / "notebooks.md"
    parameters, shown = map(new_code_cell, blocks(page, "python"))
    parameters.metadata["tags"] = ["parameters"]
    Path("notebooks").mkdir()
    own = new_notebook(cells=[parameters, shown])
    nbformat.write(own, "notebooks/slowest.ipynb")
    run(page, capsys)
    there = {path.name for path in Path("reports", STUDY).iterdir()}
    assert {"slowest.html", "slowest.ipynb", "report.html"} <= there
    assert "run-01" in Path("reports", STUDY, "slowest.html").read_text("utf-8")
    index = Path("reports/index.html").read_text("utf-8")
    assert f'href="{STUDY}/slowest.html"' in index


@pytest.mark.usefixtures("desk")
def test_another_device_gets_a_decision_of_its_own(capsys):
    page = DOCS / "tasks" / "add-a-device.md"
    shutil.copytree(STUDY / "myrouter", STUDY / "otherrouter")
    table, _control = blocks(page, "toml")
    with (STUDY / "study.toml").open("a", encoding="utf-8") as to:
        to.write(table)
    shown = run(page, capsys)
    assert "otherrouter" in shown[f"check {STUDY}"]
    assert "2 %" in shown[f"plan {STUDY} --detect 2 %"]
    main(["text", str(STUDY)])
    assert "otherrouter, tcp, 3 runs each in 3 boots:" in capsys.readouterr().out


@pytest.mark.usefixtures("desk")
def test_every_control_of_a_page_can_be_read(capsys):
    _, control = blocks(DOCS / "tasks" / "add-a-device.md", "toml")
    shutil.copytree(STUDY / "myrouter", STUDY / "otherrouter")
    with (STUDY / "study.toml").open("a", encoding="utf-8") as to:
        to.write(control)
    assert main(["text", str(STUDY)]) == 0
    assert "otherrouter" in capsys.readouterr().out


@pytest.mark.usefixtures("desk")
def test_one_figure_for_a_mail(capsys):
    shown = run(DOCS / "tasks" / "reading-a-report.md", capsys)
    assert "runs:throughput" in shown[f"figure {STUDY} --list"]
    assert Path("throughput.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("desk")
def test_all_forms_of_the_block(capsys):
    shown = run(DOCS / "tasks" / "what-to-send.md", capsys)
    assert shown[f"text {STUDY} --form trailer"].startswith("Perf-decision: ")
    assert shown[f"text {STUDY} --form cover"].startswith("Performance\n===")
    assert "|" in shown[f"text {STUDY} --markdown"]
    narrow = shown[f"text {STUDY} --width 64"].splitlines()
    assert max(map(len, narrow)) <= 64
