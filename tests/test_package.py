"""The package as it is installed: names that load late, files that come along."""

import subprocess
import sys
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import patchstudy as ps

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TEMPLATE = ROOT / "lib" / "patchstudy" / "report" / "template"


def printed(program, **options):
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        **options,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("name", ps.__all__)
def test_every_name_can_be_used(name):
    assert getattr(ps, name) is getattr(ps, name)
    assert name in dir(ps)


def test_compare_stays_the_function_whatever_is_imported():
    program = (
        "import patchstudy as ps; first = ps.compare; ps.assess\n"
        "import patchstudy.compare; from patchstudy import compare\n"
        "print(first is ps.compare is compare, callable(compare))"
    )
    assert printed(program) == "True True"


def test_a_name_that_is_not_there_is_named():
    with pytest.raises(AttributeError, match="'patchstudy' has no attribute 'plot'"):
        ps.plot  # noqa: B018 - the access is the test


def test_importing_the_package_imports_nothing_heavy():
    program = (
        "import sys, patchstudy\n"
        "print({'pandas', 'scipy', 'matplotlib'} & sys.modules.keys() or 'nothing')"
    )
    assert printed(program) == "nothing"


def test_the_notebooks_are_packed():
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"notebooks": "patchstudy/notebooks"}
    assert wheel["packages"] == ["lib/patchstudy"]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """Return a wheel of the package, or skip where its build tool is missing."""
    if find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed: the wheel is not built")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_holds_notebooks_and_templates(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    notebooks = [path.name for path in (ROOT / "notebooks").glob("*.ipynb")]
    templates = [path.name for path in TEMPLATE.iterdir() if path.is_file()]
    assert notebooks
    assert templates
    assert {f"patchstudy/notebooks/{name}" for name in notebooks} <= names
    assert {f"patchstudy/report/template/{name}" for name in templates} <= names
    assert not [name for name in names if name.startswith(("tests", "data", "lib"))]


def test_an_installed_package_finds_its_files(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    program = (
        f"import sys; sys.path[:0] = [{str(tmp_path / 'site')!r}]\n"
        "from patchstudy.report.batch import shipped\n"
        "from patchstudy.report.html import to_html\n"
        "from patchstudy.report.pdf import _STYLE\n"
        "from nbformat import v4\n"
        "print(shipped('patch.ipynb'))\n"
        "print(len(to_html(v4.new_notebook(), title='T')) > 999)\n"
        "print(_STYLE.is_file())\n"
    )
    shown = printed(program, cwd=tmp_path).split("\n")
    place = tmp_path / "site" / "patchstudy" / "notebooks" / "patch.ipynb"
    assert shown == [str(place), "True", "True"]


@pytest.mark.parametrize(
    "first",
    ["patchstudy.report.engine", "papermill", "patchstudy.report.registered"],
)
def test_the_engine_that_papermill_finds_is_ours_whoever_comes_first(first):
    """papermill loads the entry point while our engine imports papermill."""
    said = printed(
        f"import {first}\n"
        "from importlib.metadata import entry_points\n"
        "told = entry_points(group='papermill.engine', name='patchstudy-warm')\n"
        "print([one.load().nb_language.__qualname__ for one in told])\n"
    )
    assert said.strip() == "['WarmEngine.nb_language']"
