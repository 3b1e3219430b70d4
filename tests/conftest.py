"""Shared by all tests: golden files, the shared corpus, the shipped data."""

import csv
from functools import cache
from itertools import zip_longest
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples everywhere: what fails in CI fails on every desk.
settings.register_profile("patchstudy", derandomize=True, deadline=None)
settings.load_profile("patchstudy")

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"
DESIGN = """\
question = "Is it faster?"
unit = "run"
block = "block"
[[metrics]]
name = "throughput"
role = "primary"
margin = "2 %"
"""


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the expected files"
    )


@pytest.fixture
def golden(request):
    """Compare text with a file under tests/golden, or rewrite that file."""

    def check(text: str, name: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return check


@pytest.fixture(scope="session")
def shared():
    """Return the folder of shared corpora beside the checkout, or skip."""
    folder = ROOT.parent / "shared"
    if not (folder / "corpus").is_dir():
        pytest.skip("no ../shared/corpus beside this checkout: corpus not tested")
    return folder


@pytest.fixture(scope="session")
def data():
    """Return the folder of shipped studies."""
    return ROOT / "data"


@pytest.fixture(scope="session")
def assessed(data):
    """Return a function that assesses a shipped study, once a session."""
    from patchstudy.findings import assess
    from patchstudy.study import open_study

    @cache
    def of(name):
        return assess(open_study(data / name))

    return of


@pytest.fixture
def made(tmp_path):
    """Return a function that writes a study of twelve made-up runs in six blocks."""

    def write(name="driver/patch", *, patched=110.0, design=DESIGN, **factors):
        folder = tmp_path / "data" / name
        folder.mkdir(parents=True)
        (folder / "study.toml").write_text(design, encoding="utf-8")
        with (folder / "measurements.csv").open(
            "w", encoding="utf-8", newline=""
        ) as to:
            rows = csv.writer(to, lineterminator="\n")
            factors = {"device": "router", "workload": "tcp", **factors}
            names = ["metric", "unit", "value", "variant", "block", "run", "position"]
            rows.writerow([*names, *factors])
            for at in range(12):
                block, variant = (
                    at // 2 + 1,
                    ("baseline", "patched")[at // 2 % 2 ^ at % 2],
                )
                rate = patched if variant == "patched" else 100.0
                value = rate * (1 + at * 7 % 5 / 1000)
                row = ["throughput", "Mbit/s", value, variant, block, at + 1, at + 1]
                rows.writerow([*row, *factors.values()])
        return folder

    return write


@pytest.fixture
def write_study(tmp_path):
    """Return a function that writes a folder of a design, table rows and raw files."""

    def write(design, rows=(), files=None, name="driver/patch"):
        folder = tmp_path / "studies" / name
        folder.mkdir(parents=True)
        (folder / "study.toml").write_text(design, encoding="utf-8")
        if rows := list(rows):
            columns = list(dict.fromkeys(key for row in rows for key in row))
            with (folder / "measurements.csv").open("w", newline="") as to:
                table = csv.DictWriter(to, columns, restval="", lineterminator="\n")
                table.writeheader()
                table.writerows(rows)
        for path, content in (files or {}).items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(
                content.encode() if isinstance(content, str) else content
            )
        return folder

    return write


@pytest.fixture(scope="session")
def turns():
    """Return a function that makes rows of two variants that took turns (ABBA)."""

    def rows(base, patched, *, blocks=False, **factors):
        shared = {"metric": "throughput", "unit": "Mbit/s"}
        shared |= {"device": "router", "workload": "tcp", **factors}
        made = []
        for number, pair in enumerate(zip_longest(base, patched), start=1):
            for place, variant in enumerate(("baseline", "patched")):
                if pair[place] is None:
                    continue
                turn = place if number % 2 else 1 - place
                row = {**shared, "variant": variant, "run": f"{number:02}"}
                row |= {"position": 2 * number - 1 + turn, "value": repr(pair[place])}
                made.append(row | ({"block": f"{number:02}"} if blocks else {}))
        return made

    return rows


def pytest_terminal_summary(terminalreporter):
    """Say in one line what was left out for want of the shared corpus."""
    if not (ROOT.parent / "shared" / "corpus").is_dir():
        count = len(terminalreporter.stats.get("skipped", ()))
        terminalreporter.write_line(
            f"{count} tests skipped: no ../shared/corpus beside this checkout"
        )
