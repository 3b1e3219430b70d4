"""Profiles of both variants become shares of symbols and their difference."""

import pytest

from patchstudy import profiles
from patchstudy.records import Profile, Stack
from patchstudy.study import open_study

DESIGN = """\
question = "Is it faster?"
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
"""
RATE = "metric,unit,value\nthroughput,Mbit/s,100\n"


@pytest.fixture
def profiled(write_study):
    """Return a function that writes a study with these profiles of the variants."""

    def of(**folded):
        files = {"d/baseline/boot-1/run-1/t.x.csv": RATE}
        for variant, texts in folded.items():
            for number, text in enumerate(texts):
                files[f"d/{variant}/boot-9/profile-{number}/t.folded.txt"] = text
        return open_study(write_study(DESIGN, (), files))

    return of


def profile(*stacks):
    made = (Stack(frames=tuple(one.split(";")), weight=n) for one, n in stacks)
    return Profile(event=None, unit=None, stacks=tuple(made))


def test_a_symbol_counts_once_in_a_stack_however_deep():
    shares = profiles.inclusive(profile(("a;b;a_[k];b", 3), ("a;c", 1)))
    assert shares == {"a": 1.0, "b": 0.75, "c": 0.25}


def test_the_leaf_has_the_self_time():
    assert profiles.own(profile(("a;b", 3), ("a_[k]", 1))) == {"b": 0.75, "a": 0.25}


@pytest.mark.parametrize("frame", ["f", "f_[k]", "f_[i]", "f_[j]"])
def test_the_mark_of_a_frame_is_no_part_of_its_name(frame):
    assert profiles.bare(frame) == "f"


def test_self_shares_add_up_to_one():
    shares = profiles.own(profile(("a;b", 3), ("a", 1), ("c;d;e", 0.5)))
    assert sum(shares.values()) == pytest.approx(1)


def test_the_difference_is_sorted_by_size_with_its_sign(profiled):
    study = profiled(
        baseline=["main;copy 40\nmain;send 60\n"],
        patched=["main;send 90\nmain;idle 10\n"],
    )
    table = profiles.difference(study)
    found = dict(zip(table["symbol"], table["change"], strict=True))
    assert next(iter(found)) == "copy"
    assert found == pytest.approx({"copy": -0.4, "send": 0.3, "idle": 0.1, "main": 0})


def test_several_profiles_have_the_same_weight(profiled):
    study = profiled(
        baseline=["main;copy 1\nmain;send 1\n", "main;send 1000\nmain;send 0\n"],
        patched=["main;send 5\nmain;send 5\n"],
    )
    table = profiles.difference(study).set_index("symbol")
    assert table.loc["copy", "inclusive_baseline"] == pytest.approx(0.25)


def test_a_profile_of_one_variant_has_no_difference(profiled):
    study = profiled(baseline=["main;copy 1\nmain;send 1\n"])
    assert profiles.difference(study).empty
    assert list(profiles.difference(study)) == list(profiles.DIFFERENCE_COLUMNS)


def test_evidence_gives_the_share_of_each_variant(profiled):
    study = profiled(
        baseline=["main;copy 1\nmain;send 3\n"], patched=["main;send 5\nmain;send 5\n"]
    )
    (found,) = profiles.evidence(study, "copy")
    assert found.shares == {"baseline": (0.25,), "patched": (0.0,)}
    assert found.paths == (
        "d/baseline/boot-9/profile-0/t.folded.txt",
        "d/patched/boot-9/profile-0/t.folded.txt",
    )


def test_a_profile_without_weight_says_nothing(profiled):
    study = profiled(baseline=["main;copy 0\nmain;send 0\n"])
    assert profiles.profile_runs(study) == ()
    assert list(profiles.evidence(study, "copy")) == []


def test_named_symbols_are_told_first_then_those_that_are_gone(profiled):
    study = profiled(
        baseline=["main;copy 5\nmain;send 55\nmain;recv 40\n"],
        patched=["main;send 35\nmain;recv 65\n"],
    )
    told = profiles.telling(profiles.difference(study), ["send"], 2)
    assert told["symbol"].to_list() == ["send", "copy"]
