import json
from pathlib import Path

import pytest

from patchstudy.loaders import run_json
from patchstudy.records import RawFile


def raw(**facts: object) -> RawFile:
    return RawFile.of(Path("tcp.run.json"), json.dumps(facts).encode())


@pytest.mark.parametrize(
    ("written", "utc"),
    [
        pytest.param("2026-11-30T15:44:10Z", "2026-11-30T15:44:10Z", id="Z"),
        pytest.param(
            "2026-11-30T15:44:10.5+01:00", "2026-11-30T14:44:10.500Z", id="offset"
        ),
        pytest.param("2026-11-30T15:44:10", None, id="no zone"),
        pytest.param("0001-01-01T00:00:00+01:00", None, id="before all time"),
        pytest.param("this morning", None, id="words"),
        pytest.param(1796053450, None, id="a number"),
    ],
)
def test_the_start_is_given_in_utc_or_not_at_all(written, utc):
    capture = run_json.load(raw(purpose="measurement", started_at=written))
    assert capture.started_at == utc
    assert [one.code for one in capture.caveats] == ([] if utc else ["clock-unknown"])


def test_all_keys_become_facts():
    facts = {"workload": "tcp", "run": 3, "commands": {"TCP_RR": "netperf"}}
    assert run_json.load(raw(**facts)).facts == facts
    assert run_json.load(raw(**facts)).measurements == ()


@pytest.mark.parametrize(
    ("facts", "taken"),
    [
        pytest.param({"purpose": "profile", "run": 1}, True, id="purpose and run"),
        pytest.param({"workload": "tcp", "position": 1}, True, id="workload, position"),
        pytest.param({"workload": "tcp"}, False, id="no place in time"),
        pytest.param({"run": 1, "position": 2}, False, id="not what was run"),
        pytest.param({"workload": "tcp", "run": [1]}, False, id="not flat"),
    ],
)
def test_only_facts_of_a_run_are_taken(facts, taken):
    assert run_json.sniff(raw(**facts)) == taken


def test_a_cut_file_is_not_taken():
    assert not run_json.sniff(RawFile.of(Path("a"), b'{"workload": "tcp", "run": 1'))
