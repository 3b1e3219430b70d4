"""Rules about the whole: floors, loaders that do not know each other, files in step."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from patchstudy.loaders import LOADERS

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "lib" / "patchstudy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MODULES = sorted(path.relative_to(LIBRARY).as_posix() for path in LIBRARY.rglob("*.py"))
HOME = {
    name: module.__name__.rpartition(".")[2]  # type: ignore[attr-defined]
    for name, module in LOADERS.items()
}


def imported(path):
    """Return the full names that a module imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{one.name}" for one in node.names}
            names.add(str(node.module))
    return names


def test_every_floor_imports_only_from_below():
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


@pytest.mark.parametrize("tool", LOADERS)
def test_a_loader_knows_no_other_loader(tool):
    others = {f"patchstudy.loaders.{one}" for one in HOME.values()} - {
        f"patchstudy.loaders.{HOME[tool]}"
    }
    assert not imported(LIBRARY / "loaders" / f"{HOME[tool]}.py") & others


def test_every_module_that_sniffs_is_a_loader_or_a_part_of_one():
    offering = {
        path.stem
        for path in (LIBRARY / "loaders").glob("*.py")
        if re.search(r"^def sniff\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    parts = {
        name.rpartition(".")[2]
        for home in HOME.values()
        for name in imported(LIBRARY / "loaders" / f"{home}.py")
    }
    assert set(HOME.values()) <= offering
    assert offering <= set(HOME.values()) | parts


@pytest.mark.parametrize("module", MODULES)
def test_a_module_begins_with_what_it_is(module):
    tree = ast.parse((LIBRARY / module).read_text(encoding="utf-8"))
    said = ast.get_docstring(tree)
    assert said
    assert said.partition("\n")[0].endswith(".")


def test_no_module_has_a_name_that_says_nothing():
    stems = {Path(module).stem for module in MODULES}
    assert not stems & {"utils", "util", "helpers", "common", "misc"}


def test_no_file_names_a_host():
    allowed = {"www.w3.org", "lore.kernel.org", "docs.kernel.org"}
    for path in (one for one in LIBRARY.rglob("*") if one.is_file()):
        if path.suffix != ".pyc":
            text = path.read_text(encoding="utf-8")
            assert set(re.findall(r"https?://([\w.-]+\.\w+)", text)) <= allowed, path


def test_no_module_opens_a_connection():
    network = {"socket", "http.client", "urllib.request", "requests", "ftplib"}
    for module in MODULES:
        assert not imported(LIBRARY / module) & network, module


def test_everything_imported_is_a_declared_dependency():
    packages = {
        "bs4": "beautifulsoup4", "IPython": "ipykernel", "jinja2": "nbconvert",
        "matplotlib_inline": "ipykernel", "traitlets": "jupyter_client",
    }  # fmt: skip
    extra = PROJECT["project"]["optional-dependencies"]["dask"]
    needed = [*PROJECT["project"]["dependencies"], *extra]
    declared = {name_of(one) for one in needed}
    found = set()
    for module in MODULES:
        tops = {name.partition(".")[0] for name in imported(LIBRARY / module)}
        found |= tops - set(sys.stdlib_module_names) - {"patchstudy", "__future__"}
    assert {packages.get(name, name) for name in found} <= declared
    assert all(find_spec(name) for name in found)


def name_of(requirement):
    return re.split(r"[<>=!~ ;\[]", requirement, maxsplit=1)[0]


def test_conda_gets_what_pip_gets():
    listed = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    plain = [one for one in listed["dependencies"] if isinstance(one, str)]
    (inner,) = [one["pip"] for one in listed["dependencies"] if isinstance(one, dict)]
    extra = {"pip", f"python{PROJECT['project']['requires-python']}"}
    extra |= set(PROJECT["project"]["optional-dependencies"]["lab"])
    ours = set(PROJECT["project"]["dependencies"])
    assert set(plain) | set(inner) == ours | extra | {"--editable ."}
