"""Notebooks that people add: run for every study, each with a page of its own."""

import json
from dataclasses import replace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from patchstudy.cli import main
from patchstudy.errors import StudyError
from patchstudy.report import added, batch


@pytest.fixture
def put(tmp_path):
    """Return a function that puts a notebook of one line into a folder."""

    def write(name="own.ipynb", line="print('seen', study)", parameters="study = ''"):
        folder = tmp_path / "notebooks"
        folder.mkdir(exist_ok=True)
        cells = [
            new_markdown_cell("# What else?"),
            new_code_cell(parameters, metadata={"tags": ["parameters"]}),
            new_code_cell(line),
        ]
        nbformat.write(new_notebook(cells=cells), folder / name)
        return folder

    return write


@pytest.fixture
def order(tmp_path, put):
    """Return an order of reports by a small notebook, with one page more."""
    main_one = put("mine.ipynb") / "mine.ipynb"
    moved = main_one.rename(tmp_path / "mine.ipynb")
    return batch.Order(
        out=tmp_path / "reports",
        formats=("html", "text"),
        notebook=moved,
        jobs=1,
        added=added.find(put()),
    )


def report(folder, order):
    (outcome,) = batch.report_all([folder], order, tell=lambda _: None)
    return outcome


def why(folder, order):
    (task,) = batch.tasks([folder], order)
    return list(batch.reasons(task))


def test_notebooks_with_a_study_are_found_but_the_shipped_ones(put):
    put("explore.ipynb")
    put("other.ipynb", parameters="reports = '.'")
    put("typed.ipynb", parameters="study: str = ''")
    folder = put("b.ipynb")
    put(".ipynb_checkpoints.ipynb", parameters="folder = ''")
    names = [one.name for one in added.find(folder)]
    assert names == ["b.ipynb", "typed.ipynb"]
    left = added.find(folder, instead=folder / "b.ipynb")
    assert [one.name for one in left] == ["typed.ipynb"]
    assert added.find(folder / "nowhere") == ()


@pytest.mark.parametrize(
    "content", ["[]", "{}", '{"cells": [1, {"metadata": []}]}', '{"cells": null}']
)
def test_what_has_no_cells_takes_no_study(tmp_path, content):
    (tmp_path / "odd.ipynb").write_text(content, encoding="utf-8")
    assert added.find(tmp_path) == ()


def test_what_is_no_json_is_named(tmp_path):
    (tmp_path / "torn.ipynb").write_text('{"cells": [', encoding="utf-8")
    with pytest.raises(StudyError, match=r"torn.ipynb: not a notebook \(no JSON\)"):
        added.find(tmp_path)


def test_the_name_of_the_report_is_taken(put):
    with pytest.raises(StudyError, match="would take the name of the report"):
        added.find(put("Report.ipynb"))


def test_the_page_stands_beside_the_report_and_in_the_index(made, order):
    folder = made("a/one")
    outcome = report(folder, order)
    assert outcome.ok
    batch.index([outcome], order)
    page = (order.out / "a/one/own.html").read_text("utf-8")
    assert "a/one: What else?" in page
    assert "seen ../../../data/a/one" in page
    assert (order.out / "a/one/own.ipynb").is_file()
    (entry,) = json.loads((order.out / "index.json").read_text("utf-8"))["studies"]
    assert entry["pages"] == ["own.html"]
    assert 'href="a/one/own.html"' in (order.out / "index.html").read_text("utf-8")


def test_the_page_is_made_again_when_and_only_when_it_must_be(made, order, put):
    folder = made("a/one")
    report(folder, order)
    first = (order.out / "a/one/own.html").read_bytes()
    assert why(folder, order) == []
    assert not report(folder, order).made
    put(line="print('changed', study)")
    assert why(folder, order) == ["page of own.ipynb is of an older notebook"]
    assert report(folder, order).made
    assert (order.out / "a/one/own.html").read_bytes() != first
    (order.out / "a/one/own.html").unlink()
    assert why(folder, order) == ["own.html is missing"]


def test_the_page_goes_with_its_notebook(made, order):
    folder = made("a/one")
    report(folder, order)
    without = replace(order, added=())
    assert why(folder, without) == ["page of own.ipynb is not asked for any more"]
    report(folder, without)
    there = {path.name for path in (order.out / "a/one").iterdir()}
    names = {".made.json", "report.html", "report.ipynb", "report.json", "report.txt"}
    assert there == names


def test_another_study_does_not_make_the_page_stale(made, order):
    first, other = made("a/one"), made("a/two")
    batch.index([report(first, order)], order)
    batch.index([report(other, order)], order)
    listed = json.loads((order.out / "index.json").read_text("utf-8"))["studies"]
    assert [one["stale"] for one in listed] == ["", ""]


def test_a_page_that_fails_stops_no_report(made, order, put):
    folder = made("a/one")
    put(line="1 / 0")
    outcome = report(folder, order)
    assert outcome.error == ""
    assert not outcome.ok
    (line,) = outcome.unread
    told = "own.ipynb: cell '1 / 0': ZeroDivisionError: division by zero"
    assert line == f"a/one: {told}"
    assert (order.out / "a/one/report.html").is_file()
    assert why(folder, order) == ["page of own.ipynb is not made yet"]
    put()
    assert report(folder, order).ok
    assert why(folder, order) == []


def test_explain_names_a_new_notebook(made, order, put, tmp_path, capsys):
    folder = made("a/one")
    words = ["report", str(tmp_path / "data"), "-o", str(order.out), "--quiet",
             "--notebook", str(order.notebook), "--formats", "text",
             "--notebooks", str(tmp_path / "notebooks")]  # fmt: skip
    assert main(words) == 0
    put("more.ipynb")
    capsys.readouterr()
    assert main([*words, "--explain"]) == 0
    assert capsys.readouterr().out == "a/one: page of more.ipynb is not made yet\n"
    assert folder.is_dir()
