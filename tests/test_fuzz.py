"""A thousand mutated files, the same each time; benchmarks/fuzz.py tries more."""

import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "benchmarks" / "fuzz.py"
spec = importlib.util.spec_from_file_location("fuzz", PATH)
fuzz = importlib.util.module_from_spec(spec)
sys.modules["fuzz"] = fuzz
spec.loader.exec_module(fuzz)


@pytest.mark.slow
def test_no_mutated_file_crashes_hangs_or_gives_what_cannot_be():
    tallies = fuzz.run(fuzz.seeds(), seed=20, count=1200)
    assert sum(one.inputs for one in tallies.values()) == 1200
    assert sum(one.refused for one in tallies.values()) > 250
    assert [line for one in tallies.values() for line in one.failures] == []


def test_the_same_seed_makes_the_same_inputs():
    paths = fuzz.seeds("ping")
    one, other = (
        [next(made)[2] for _ in range(20)]
        for made in (fuzz.inputs(paths, 3), fuzz.inputs(paths, 3))
    )
    assert one == other


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.txt", "Linux 6.1 x\n", ""),  # no loader knows it: refused, no failure
        ("b.json", "[" * 100_000, ""),
    ],
)
def test_a_refusal_is_no_failure(name, text, problem):
    tally = fuzz.Tally()
    assert fuzz.tried(name, text.encode(), tally) == problem
    assert (tally.inputs, tally.refused) == (1, 1)


def test_a_crash_is_told(monkeypatch):
    def crash(_):
        raise KeyError("x")

    monkeypatch.setattr(fuzz.loaders, "load_raw", crash)
    assert fuzz.tried("a", b"x", fuzz.Tally()) == "KeyError: 'x'"
