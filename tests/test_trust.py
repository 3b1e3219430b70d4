"""``docs/trust.md``: every row is backed, and what no other file tests."""

import re
from pathlib import Path

import pytest

from patchstudy import loaders
from patchstudy.errors import StudyError
from patchstudy.study import open_study
from patchstudy.study.keys import MAX_BYTES

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
BACKED = re.findall(r"`((?:tests|benchmarks)/\w+\.py)(?:::(\w+))?`", PAGE)


@pytest.mark.parametrize(("path", "test"), BACKED)
def test_every_named_test_and_script_exists(path, test):
    text = (ROOT / path).read_text(encoding="utf-8")
    assert not test or f"\ndef {test}(" in text


def test_every_row_of_what_was_tried_names_its_test():
    tables = PAGE.split("| shown by |\n")[1:]
    rows = [row for one in tables for row in one.partition("\n\n")[0].splitlines()[1:]]
    assert len(rows) > 30
    assert [row for row in rows if not re.search(r"`(tests|benchmarks)/", row)] == []


def test_the_limits_are_those_of_the_code():
    assert f'| {loaders.MAX_BYTES // 2**20} MiB | "file larger than' in PAGE
    assert (
        f"| `study.toml`, `plan.json`, `runs.csv` | {MAX_BYTES // 2**20} MiB |" in PAGE
    )


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        pytest.param("study.toml", "a = " + "[" * 10**5, "not TOML", id="nested TOML"),
        pytest.param("study.toml", "a = " + "9" * 5000, "not TOML", id="many digits"),
        pytest.param("study.toml", "#" * MAX_BYTES + "#", "larger than", id="large"),
        pytest.param("study.toml", None, "leads out of the study", id="device"),
        pytest.param("plan.json", "[" * 10**5, "no stored plan", id="nested JSON"),
        pytest.param("plan.json", "9" * 5000, "no stored plan", id="JSON of digits"),
        pytest.param(
            "plan.json", " " * MAX_BYTES + "1", "larger than", id="large plan"
        ),
    ],
)
def test_a_declared_file_that_is_absurd_is_one_line(made, name, content, words):
    folder = made()
    (folder / name).unlink(missing_ok=True)
    if content is None:
        (folder / name).symlink_to("/dev/zero")
    else:
        (folder / name).write_text(content)
    with pytest.raises(StudyError, match=words) as caught:
        open_study(folder)
    assert "\n" not in str(caught.value)
