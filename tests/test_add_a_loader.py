"""The page about adding a loader, done as it says."""

import re
import types
from pathlib import Path

import pytest

from patchstudy import loaders

PAGE = Path(__file__).parents[1] / "docs" / "add-a-loader.md"


def blocks(kind):
    page = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)


@pytest.fixture
def loadavg(monkeypatch):
    module = types.ModuleType("loadavg")
    exec(compile(blocks("python")[0], str(PAGE), "exec"), module.__dict__)
    name, value = re.fullmatch(r'"(\w+)": (\w+),\n', blocks("python")[1]).groups()
    monkeypatch.setitem(loaders.LOADERS, name, {"loadavg": module}[value])
    return module


@pytest.fixture
def raw(tmp_path):
    path = tmp_path / "loadavg.txt"
    path.write_text(blocks("raw")[0], encoding="ascii")
    return path


@pytest.mark.usefixtures("loadavg")
def test_the_loader_of_the_page_reads_the_file_of_the_page(raw):
    capture = loaders.load(raw)
    loads = {one.labels["minutes"]: one.value for one in capture.measurements}
    assert loads == {"1": 8.29, "5": 8.08, "15": 8.76}
    assert capture.facts == {"running": 6, "tasks": 148}
    assert capture.tool == "loadavg"


def test_it_takes_no_file_of_another_tool(loadavg, golden_raw):
    assert [path for path in golden_raw if loadavg.sniff(loaders.read(path))] == []


def test_without_the_line_nobody_takes_the_file(raw):
    with pytest.raises(loaders.UnknownToolError, match="no loader recognises it"):
        loaders.load(raw)


@pytest.fixture
def golden_raw():
    folder = Path(__file__).parent / "golden" / "loaders"
    return [
        path
        for path in sorted(folder.glob("*/*"))
        if path.name != "SOURCE" and not path.name.endswith(".expected.json")
    ]
