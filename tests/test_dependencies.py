"""``docs/dependencies.md`` and ``requirements.lock`` against ``pyproject.toml``."""

import contextlib
import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.markers import Marker, default_environment
from packaging.requirements import Requirement

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


#: Systems that the lock is for: what markers of requirements ask for.
SYSTEMS = [
    {"sys_platform": system, "platform_system": name, "platform_machine": machine,
     "os_name": "nt" if system == "win32" else "posix",
     "implementation_name": "cpython", "platform_python_implementation": "CPython",
     "python_version": version, "python_full_version": f"{version}.7", "extra": ""}
    for system, name, machine in (
        ("linux", "Linux", "x86_64"), ("linux", "Linux", "aarch64"),
        ("darwin", "Darwin", "arm64"), ("win32", "Windows", "AMD64"),
    )
    for version in ("3.11", "3.12", "3.13", "3.14")
]  # fmt: skip


def locked(system=None):
    """Return the locked versions by name: of one system, or all as pairs."""
    entries = re.findall(
        r"^([a-z0-9-]+)==(\S+)(?: ; ([^\\]+?))? \\$", LOCK, re.MULTILINE
    )
    if system is None:
        return [(name, version) for name, version, _ in entries]
    there = [
        (name, version)
        for name, version, marker in entries
        if not marker or Marker(marker).evaluate(system)
    ]
    assert len(dict(there)) == len(there)  # one version of each
    return dict(there)


def test_every_locked_version_has_its_hashes_and_no_line_names_a_place():
    lines = [one for one in LOCK.splitlines() if not one.startswith("#")]
    hashes = [
        x for x in lines if re.fullmatch(r" +--hash=sha256:[0-9a-f]{64}( \\)?", x)
    ]
    assert len(hashes) + len(locked()) == len(lines)
    assert "://" not in LOCK
    for before, line in pairwise(lines):
        assert before.endswith(" \\") is line.startswith(" ")


def test_the_lock_was_made_for_the_dependencies_as_they_are():
    made_for = re.findall(r"^#   (\S+)$", LOCK, re.MULTILINE)
    assert made_for == PROJECT["project"]["dependencies"]


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda one: " ".join(one.values()))
def test_the_lock_holds_every_dependency_in_a_version_that_is_allowed(system):
    versions = locked(system)
    for one in map(Requirement, GROUPS["To run"]):
        assert versions[normal(one.name)] in one.specifier


def test_what_the_locked_packages_need_is_locked_in_a_version_that_they_allow():
    here = {**default_environment(), "extra": ""}
    versions = locked(here)
    checked = 0
    for name, version in versions.items():
        with contextlib.suppress(PackageNotFoundError):
            told = metadata(name)
            if told["Version"] != version:  # others may need other things
                continue
            for one in map(Requirement, told.get_all("Requires-Dist", [])):
                if one.marker is None or one.marker.evaluate(here):
                    assert versions[normal(one.name)] in one.specifier, name
                    checked += 1
    if not checked:
        pytest.skip("none of the locked versions is installed here")
