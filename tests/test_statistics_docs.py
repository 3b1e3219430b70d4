"""docs/statistics.md names every word that the report can print about statistics."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from patchstudy import decisions, findings, sentences, stats, verdicts
from patchstudy.decisions import Decision
from patchstudy.verdicts import Guarded, Verdict

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "figures"


def _benchmark():
    path = ROOT / "benchmarks" / "statistics_figures.py"
    spec = importlib.util.spec_from_file_location("statistics_figures", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["statistics_figures"] = module
    spec.loader.exec_module(module)
    return module


made = _benchmark()
NAMES = [*made.RUNS, "verdicts", "guards"]
SPEAKING = (verdicts, decisions, sentences, findings)
RAW = made.PAGE.read_text(encoding="utf-8")
PAGE = " ".join(RAW.split())


@pytest.mark.parametrize("word", [*Verdict, *Guarded, *Decision], ids=str)
def test_every_answer_is_on_the_page(word):
    assert f"`{word}`" in PAGE


def test_every_text_of_the_findings_is_on_the_page():
    names = sorted(_spoken())
    texts = [text for one in SPEAKING for text in made.templates(one, names)]
    assert len(texts) > 50
    assert [text for text in texts if text not in PAGE] == []


def test_the_table_of_caveats_is_that_of_the_source(request):
    expected = made.with_table(RAW)
    if request.config.getoption("--update-golden"):
        made.PAGE.write_text(expected, encoding="utf-8")
    else:
        assert expected == RAW, "run python benchmarks/statistics_figures.py"


def test_the_table_of_sizes_is_that_of_the_library():
    rows = re.findall(r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", RAW, re.MULTILINE)
    assert len(rows) == 8
    for n, apart, paired in rows:
        found = (
            stats.detectable_change(1.0, int(n)),
            stats.detectable_change(1.0, int(n), paired=True),
        )
        assert (apart, paired) == tuple(f"{one:.2f}" for one in found)


def test_every_figure_is_embedded_with_words_for_those_who_do_not_see_it():
    embedded = re.findall(r"!\[([^]]{40,})\]\(figures/([\w-]+)\.svg\)", RAW)
    assert sorted(name for _, name in embedded) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_is_small_and_tells_nothing_of_the_machine(name):
    text = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert len(text) < 200_000
    assert not re.search(r"<dc:date>|/home/|/root/|/tmp/|matplotlib v", text)


def test_every_figure_comes_out_as_it_was(assessed):
    drawn = dict(made.drawn(assessed))
    assert sorted(drawn) == sorted(NAMES)
    for name, svg in drawn.items():
        assert svg == (FOLDER / f"{name}.svg").read_bytes(), name


def _spoken():
    """Names in those modules that hold words for the report."""
    asked = {
        "sentence_of", "_too_few", "_OPENING", "headline", "_decide", "qualifiers_of",
        "_size", "verdict_of", "cap_of", "_hidden", "_at_least", "_none_bound",
        "failed_sentence", "_SHOWN", "_against",
        "_lent_spread", "_boots_added", "_lender", "_one_boot",
    }  # fmt: skip
    places = {name for one in SPEAKING for name, _ in made.places(one)}
    assert asked <= places
    constants = {name for name in places if name.isupper() and name[0] != "_"}
    return asked | constants | {name for name in places if name.endswith("words")}
