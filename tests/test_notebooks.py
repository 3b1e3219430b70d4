"""The notebooks: arguments, not programs, committed without outputs."""

import ast
import json
import re
from pathlib import Path

import pytest

from patchstudy.report.run import Run, execute

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))
LONGEST = 10
#: What a program is made of; what needs it belongs in the library.
PROGRAM = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.For, ast.While,
    ast.comprehension, ast.If, ast.IfExp, ast.Try, ast.TryStar, ast.With,
)  # fmt: skip


@pytest.fixture(params=NOTEBOOKS)
def notebook(request):
    """Return the content of each notebook with its name."""
    content = json.loads((FOLDER / request.param).read_text(encoding="utf-8"))
    return {"name": Path(request.param).stem, **content}


def source(cell):
    return "".join(cell["source"])


def code(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_the_notebooks_of_the_documentation_are_there():
    shipped = {
        "explore.ipynb",
        "literature.ipynb",
        "method.ipynb",
        "patch.ipynb",
        "summary.ipynb",
    }
    assert shipped <= set(NOTEBOOKS)


def test_nothing_was_run(notebook):
    for cell in code(notebook):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
        assert set(cell["metadata"]) <= {"tags"}


def test_the_title_comes_first_and_is_the_only_one(notebook):
    texts = [source(one) for one in notebook["cells"] if one["cell_type"] == "markdown"]
    titles = [line for text in texts for line in text.splitlines() if line[:2] == "# "]
    assert source(notebook["cells"][0]).startswith("# ")
    assert len(titles) == 1


def test_exactly_one_cell_holds_the_parameters(notebook):
    tagged = [
        cell
        for cell in code(notebook)
        if "parameters" in cell["metadata"].get("tags", [])
    ]
    assert tagged == code(notebook)[:1]
    assert all(isinstance(one, ast.Assign) for one in ast.parse(source(tagged[0])).body)


def test_every_section_says_what_is_seen_before_it_is_seen(notebook):
    for before, cell in zip(notebook["cells"], notebook["cells"][1:], strict=False):
        text = source(before)
        if before["cell_type"] == "markdown" and cell["cell_type"] == "code":
            assert re.sub(r"^#+ [^\n]*", "", text).strip(), text
    first = [one["cell_type"] for one in notebook["cells"]][:2]
    assert first == ["markdown", "code"]


def test_cells_are_short_and_no_programs(notebook):
    for cell in code(notebook):
        text = source(cell)
        assert len(text.splitlines()) <= LONGEST
        found = [one for one in ast.walk(ast.parse(text)) if isinstance(one, PROGRAM)]
        assert not found, text


def test_the_names_of_cells_are_fixed(notebook):
    names = [cell["id"] for cell in notebook["cells"]]
    assert names == [f"{notebook['name']}-{at:02}" for at in range(len(names))]


def test_the_kernel_is_any_python_3(notebook):
    assert notebook["nbformat"] == 4
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert notebook["metadata"]["language_info"] == {"name": "python"}


def test_the_default_study_is_shipped(notebook):
    value, *_ = (
        ast.literal_eval(line.value)
        for line in ast.parse(source(code(notebook)[0])).body
    )
    if notebook["name"] == "literature":
        assert (FOLDER / value).is_file()
    elif notebook["name"] != "summary":
        assert (FOLDER / value / "study.toml").is_file()


def ran(name, **parameters):
    """Run a notebook; return what its cells show, as one text."""
    run = Run(notebook=FOLDER / name, parameters=parameters, cwd=FOLDER, timeout_s=300)
    done = execute(run)
    outputs = [one for cell in done.cells for one in cell.get("outputs", [])]
    assert outputs
    assert not [one for one in outputs if one.output_type == "error"]
    assert not [one for one in outputs if one.get("name") == "stderr"]
    return json.dumps(outputs)


def test_explore_runs_top_to_bottom():
    shown = ran("explore.ipynb", study="../data/qmi_wwan/rx-prefetch")
    assert "image/png" in shown
    assert "The claim is not supported" in shown


def test_literature_runs_top_to_bottom():
    shown = ran("literature.ipynb")
    assert "state no number of runs, or one run" in shown
    assert "sis900-fix" in shown


def test_explore_leads_from_a_metric_to_a_raw_file():
    shown = ran("explore.ipynb", study="../data/qmi_wwan/same-module-sequential")
    assert "tcp-egress80.iperf3.json" in shown
    assert "Menus need ipywidgets" in shown or "widget-view" in shown


def test_method_runs_top_to_bottom():
    shown = ran("method.ipynb", study="../data/qmi_wwan/same-module")
    assert "Made-up data with the spread of this study" in shown
    assert "image/png" in shown


def test_summary_runs_top_to_bottom(assessed, tmp_path):
    from patchstudy.report.results import written

    names = ["qmi_wwan/same-module", "veth/txqueuelen"]
    for name in names:
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "report.json").write_bytes(written(assessed(name)))
    listed = [{"study": name, "report": True, "error": ""} for name in names]
    listed.append({"study": "x/<b>y", "report": False, "error": "no such *file*"})
    (tmp_path / "index.json").write_text(json.dumps({"studies": listed}))
    shown = ran("summary.ipynb", reports=str(tmp_path))
    assert all(name in shown for name in names)
    assert "x/&lt;b&gt;y: no new report: no such *file*" in shown
    assert "image/svg+xml" in shown
