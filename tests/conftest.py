"""Shared by all tests: golden files, the shared corpus, the shipped data."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"


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
