"""The command line: words, exit statuses, one line an error, a terminal left alone."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from patchstudy import cli
from patchstudy.cli import main

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "loaders"
IPERF3 = GOLDEN / "iperf3" / "v312-tcp-fwd.json"
COMMANDS = ["report", "check", "text", "load", "compare"]
KEYS = [
    "path", "sha256", "tool", "tool_version", "workload", "started_at", "measurements",
    "facts", "caveats", "error",
]  # fmt: skip


@pytest.fixture
def run(capsys):
    """Return a function that runs a command and returns status, output and errors."""

    def call(*words):
        status = main([str(word) for word in words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def python(*words, **options):
    command = [sys.executable, *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, **options
    )


@pytest.fixture
def iperf3(tmp_path):
    """Return a function that writes raw files in ABBA order, one rate each."""

    def write(baseline, patched):
        content = IPERF3.read_text()
        start = json.loads(content)["start"]["timestamp"]["timesecs"]
        sets = {"baseline": [], "patched": []}
        for at in range(12):
            variant = ("baseline", "patched")[at // 2 % 2 ^ at % 2]
            rate = {"baseline": baseline, "patched": patched}[variant]
            node = json.loads(content)
            node["start"]["timestamp"]["timesecs"] = start + 60 * at
            scaled(node["end"], rate * (1 + at * 7 % 13 / 2000))
            path = tmp_path / f"{variant}-{at}.json"
            path.write_text(json.dumps(node))
            sets[variant].append(path)
        return [*sets["baseline"], "--with", *sets["patched"]]

    return write


def scaled(node, factor):
    """Multiply every amount in a part of an iperf3 file."""
    for key, value in node.items():
        if key in {"bytes", "bits_per_second"}:
            node[key] = type(value)(value * factor)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                scaled(one, factor)


# ---- help ---------------------------------------------------------------------------


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_shows_an_example(command, capsys):
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert "example: patchstudy " in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_help_of_every_command_imports_nothing_heavy():
    check = (
        "import sys\nfrom patchstudy.cli import main\n"
        f"for name in {COMMANDS}:\n"
        "    try: main([name, '--help'])\n"
        "    except SystemExit: pass\n"
        "heavy = {'pandas', 'numpy', 'scipy', 'matplotlib', 'nbformat', 'IPython'}\n"
        "sys.exit(', '.join(sorted(heavy & sys.modules.keys())) or 0)"
    )
    done = python("-c", check)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["report", "--jobs", "0"], "'0' is no number of at least 1"),
        (["report", "--formats", "doc"], "'doc' is none of html, pdf, text"),
        (["report", "--memory", "4"], "'4' is no size such as 4G or 500M"),
        (["report", "--fail-on", "luck"], "'luck' is none of veto, worse"),
        (["load", "x", "--format", "xml"], "invalid choice: 'xml'"),
        (["fly"], "invalid choice: 'fly'"),
        ([], "the following arguments are required"),
    ],
)
def test_a_wrong_word_is_named(words, problem, capsys):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert problem in capsys.readouterr().err


# ---- load ---------------------------------------------------------------------------


def test_load_prints_a_table(run):
    status, out, err = run("load", IPERF3)
    assert (status, err) == (0, "")
    assert out.startswith(f"{IPERF3}: iperf3 3.12, values by run\n")
    assert out.endswith("are not shown; see them with --grain interval\n")
    assert "throughput" in out
    assert "bit/s" in out


def test_load_prints_intervals_where_asked(run):
    status, out, _ = run("load", "--grain", "interval", "--format", "csv", IPERF3)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert status == 0
    assert rows
    assert all(row["start_s"] and row["end_s"] for row in rows)
    assert {row["unit"] for row in rows if row["metric"] == "throughput"} <= {"bit/s"}


def test_load_prints_json_of_every_file_also_of_a_broken_one(run, tmp_path):
    cut = tmp_path / "cut.json"
    cut.write_bytes(IPERF3.read_bytes()[:2000])
    paths = [IPERF3, cut, GOLDEN / "mpstat" / "cap-PALL.json"]
    status, out, err = run("load", "--format", "json", *paths)
    first, second, third = json.loads(out)
    assert status == 2
    assert list(first) == list(second) == KEYS
    assert first["error"] is None
    assert [first["path"], second["path"]] == [str(IPERF3), str(paths[2])]
    assert third["path"] == str(cut)
    assert third["error"].keys() == {"text", "where"}
    assert err.startswith(f"patchstudy: {cut}:")
    assert err.count("\n") == 1


def test_an_aborted_run_is_shown_and_named(run):
    path = GOLDEN / "iperf3" / "v312-err-server-killed.json"
    status, out, err = run("load", "--format", "json", path)
    (one,) = json.loads(out)
    assert status == 2
    assert one["error"]["text"]
    assert all(value["start_s"] is not None for value in one["measurements"])
    assert "aborted run: " in err
    assert err.count("\n") == 1


def test_load_writes_parquet(capsysbinary):
    assert main(["load", "--format", "parquet", str(IPERF3)]) == 0
    table = pd.read_parquet(io.BytesIO(capsysbinary.readouterr().out))
    assert {"path", "tool", "metric", "value", "unit"} <= set(table.columns)
    assert (table["tool"] == "iperf3").all()


def test_a_folder_stands_for_all_its_files(run):
    status, out, _ = run("load", "--format", "json", GOLDEN / "mpstat")
    tools = {one.get("tool") for one in json.loads(out)}
    assert status == 2  # SOURCE and the expected values are no raw files
    assert "mpstat" in tools


@pytest.mark.parametrize("kind", ["table", "csv", "json"])
def test_control_characters_never_reach_the_terminal(kind, run, tmp_path):
    hostile = "a\x1b[31mb\u202e"
    good = tmp_path / f"{hostile}.csv"
    good.write_text(f"metric,unit,value,who\nevent:{hostile},1,2,{hostile}\n")
    bad = tmp_path / f"{hostile}.txt"
    bad.write_text(hostile)
    status, out, err = run("load", "--format", kind, good, bad, tmp_path / "no\x07")
    assert status == 2
    assert "\\x1b" in out or "\\u001b" in out
    assert not set("\x1b\x07\u202e") & set(out + err)
    assert err.count("\n") == 2


# ---- check and text -----------------------------------------------------------------


def test_check_of_a_study_without_doubts_is_0(run, data):
    status, out, err = run("check", data / "qmi_wwan" / "same-module")
    assert (status, err) == (0, "")
    assert out.startswith("qmi_wwan/same-module: ")
    assert "\ndoubt: " not in out


def test_check_of_a_study_with_doubts_is_1(run, data):
    status, out, err = run("check", data / "qmi_wwan" / "same-module-sequential")
    assert (status, err) == (1, "")
    assert "\ncap: " in out


def test_check_goes_on_after_a_study_that_cannot_be_used(run, made, tmp_path):
    made("a/torn", design="question = ''")
    made("a/whole")
    status, out, err = run("check", "--json", tmp_path / "data")
    assert status == 2
    assert [one["study"] for one in json.loads(out)] == ["a/whole"]
    assert err.startswith(f"patchstudy: {tmp_path}/data/a/torn/study.toml: ")


def test_a_raw_file_that_is_broken_is_named_by_check_and_text(run, made):
    folder = made()
    path = folder / "router/baseline/boot-01/run-01/tcp.iperf3.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(IPERF3.read_bytes()[:2000])
    status, out, _ = run("check", folder)
    assert status == 2
    assert "not used: router/baseline/boot-01/run-01/tcp.iperf3.json: not JSON" in out
    status, out, err = run("text", folder)
    assert status == 2
    assert out.startswith("driver/patch: not yet\n")
    assert err.startswith(f"patchstudy: {path}: not JSON")


@pytest.mark.parametrize("command", ["report", "check", "text"])
def test_a_folder_that_is_not_there_is_one_line(command, run, tmp_path):
    status, out, err = run(command, tmp_path / "nowhere")
    assert (status, out) == (2, "")
    assert err.startswith(f"patchstudy: {tmp_path}/nowhere: no such folder; give the")
    assert err.count("\n") == 1


# ---- compare ------------------------------------------------------------------------


def test_the_same_module_is_equal_to_itself(run, data):
    raw = sorted((data / "qmi_wwan" / "same-module").rglob("*.iperf3.json"))
    sets = [[p for p in raw if name in p.parts] for name in ("baseline", "patched")]
    words = ["compare", *sets[0], "--with", *sets[1], "--fail-on", "worse", "--json"]
    status, out, err = run(*words)
    (first, *_) = json.loads(out)["comparisons"]
    assert (status, err) == (0, "")
    assert (first["metric"], first["verdict"]) == ("throughput", "equivalent")


def test_what_got_worse_fails_where_asked(run, iperf3):
    sets = iperf3(1.0, 0.8)
    assert run("compare", *sets)[0] == 0
    status, out, err = run("compare", *sets, "--fail-on", "worse")
    assert (status, err) == (1, "")
    assert "throughput on test: worse by -20.0" in out


def test_what_got_better_does_not_fail(run, iperf3):
    status, out, _ = run("compare", *iperf3(1.0, 1.2), "--fail-on", "worse")
    assert status == 0
    assert "throughput on test: better by +20.0" in out


def test_the_margin_of_a_comparison_can_be_given(run, iperf3):
    _, out, _ = run("compare", *iperf3(1.0, 1.2), "--margin", "30 %")
    assert "below the margin of 30 %" in out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--metric", "thruput"], "unknown metric 'thruput'; known metrics: throughp"),
        (["--margin", "5"], "'5' is no margin; write it as '1 %' or '0.5 pp'"),
        (
            ["--margin", "5 us"],
            "does not fit throughput; give it in %, GB/s, Gbit/s, MB/s",
        ),
    ],
)
def test_a_wrong_metric_or_margin_is_one_line(words, problem, run):
    status, out, err = run("compare", IPERF3, "--with", IPERF3, *words)
    assert (status, out) == (2, "")
    assert err.startswith("patchstudy: compare: metrics[1].")
    assert problem in err
    assert err.count("\n") == 1


def test_a_file_given_twice_in_one_set_is_one_line(run):
    status, out, err = run("compare", IPERF3, IPERF3, "--with", IPERF3)
    assert (status, out) == (2, "")
    assert "given twice in one set; name each file once" in err
    assert err.count("\n") == 1


def test_a_file_in_both_sets_is_a_doubt(run):
    _, out, _ = run("compare", IPERF3, "--with", IPERF3)
    assert out.count("the same measurement stands in two variants") == 1


def test_files_that_cannot_be_used_are_named(run, tmp_path):
    status, _, err = run("compare", IPERF3, "--with", tmp_path / "none.json")
    assert status == 2
    assert "no patched file can be used; " in err
    assert "none.json: not a file" in err


# ---- interruptions ------------------------------------------------------------------


def test_an_interruption_is_one_line(monkeypatch, run):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_load", interrupted)
    assert run("load", IPERF3) == (
        130, "", "patchstudy: stopped; finished reports are whole\n",
    )  # fmt: skip


@pytest.mark.parametrize("grain", ["run", "interval"])
def test_a_reader_that_goes_away_is_no_error(grain):
    """Little output is found out when it is flushed, much when it is written."""
    command = [sys.executable, "-m", "patchstudy", "load", "--grain", grain]
    command += [str(IPERF3)] * (1 if grain == "run" else 50)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 0


def test_the_module_is_the_command():
    done = python("-m", "patchstudy", "text", "nowhere", cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr.startswith("patchstudy: nowhere: no such folder")
