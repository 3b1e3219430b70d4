"""``docs/dependencies.md`` and ``requirements.lock`` against ``pyproject.toml``."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
GROUPS = {
    "To run": PROJECT["project"]["dependencies"],
    "For the notebooks by hand (`lab`)": PROJECT["project"]["optional-dependencies"][
        "lab"
    ],
    "For reports made by a cluster (`dask`)": PROJECT["project"][
        "optional-dependencies"
    ]["dask"],
    "For the tests (`dev`)": PROJECT["project"]["optional-dependencies"]["dev"],
}


def normal(requirement):
    name = re.split(r"[<>=!~ ;\[]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def rows(heading):
    part = PAGE.split(f"\n## {heading}\n")[1].partition("\n## ")[0]
    cells = [line.strip("| ").split(" | ") for line in part.splitlines() if "|" in line]
    return cells[2:]


@pytest.mark.parametrize("heading", GROUPS)
def test_every_dependency_is_listed_with_its_reason_and_no_other(heading):
    listed = rows(heading)
    assert [normal(row[0]) for row in listed] == sorted(map(normal, GROUPS[heading]))
    assert all(len(row) == 5 and all(row) for row in listed)


@pytest.mark.parametrize("row", rows("To run"), ids=lambda row: row[0])
def test_the_licence_is_that_of_the_installed_package(row):
    try:
        told = metadata(row[0])
    except PackageNotFoundError:
        pytest.skip(f"{row[0]} is not installed")
    family = {"PSF": "Python Software Foundation"}.get(row[3], row[3].split("-")[0])
    licence = [told.get("License-Expression") or "", (told.get("License") or "")[:60]]
    assert any(family in one for one in [*licence, *told.get_all("Classifier", [])])


def test_every_locked_wheel_has_its_hash_and_no_line_names_a_place():
    entries = re.findall(
        r"^([a-z0-9-]+)==(\S+) \\\n    --hash=sha256:([0-9a-f]{64})$",
        LOCK,
        re.MULTILINE,
    )
    rest = [line for line in LOCK.splitlines() if line and not line.startswith("#")]
    assert len(rest) == 2 * len(entries)
    assert "://" not in LOCK
    assert len({name for name, _v, _h in entries}) == len(entries)


def test_the_lock_holds_every_dependency_in_a_version_that_is_allowed():
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+) ", LOCK, re.MULTILINE))
    for one in GROUPS["To run"]:
        oldest = one.partition(">=")[2]
        parts = [
            tuple(int(n) for n in re.findall(r"\d+", version)[:3])
            for version in (locked[normal(one)], oldest)
        ]
        assert parts[0] >= parts[1], one
