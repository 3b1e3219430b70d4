"""What a loader says of itself, how files are recognised fast, what a table holds."""

import csv
import inspect
import io
import json
from fnmatch import fnmatchcase
from pathlib import Path

import pandas as pd
import pytest

from patchstudy import loaders
from patchstudy.cli import main
from patchstudy.loaders import LOADERS, iperf3, text
from patchstudy.records import Measurement, RawFile, intervals
from patchstudy.report import listing

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "loaders"
IPERF3 = GOLDEN / "iperf3" / "v312-tcp-fwd.json"
WITH_SOURCES = [name for name, one in LOADERS.items() if hasattr(one, "SOURCES")]
OPENING = [name for name, one in LOADERS.items() if hasattr(one, "OPENS")]


def raw_files(folder):
    return [
        path
        for path in sorted(folder.glob("*"))
        if path.name != "SOURCE" and not path.name.endswith(".expected.json")
    ]


# ---- explain ------------------------------------------------------------------------


@pytest.mark.parametrize("tool", LOADERS)
def test_a_loader_says_what_it_reads_and_how_it_knows(tool):
    assert inspect.getdoc(LOADERS[tool])
    assert inspect.getdoc(LOADERS[tool].sniff).startswith("Say whether ")


@pytest.mark.parametrize("tool", WITH_SOURCES)
def test_the_sources_of_a_loader_are_those_of_its_metrics(tool):
    captures = [loaders.load(path) for path in raw_files(GOLDEN / tool)]
    metrics = {one.metric for capture in captures for one in capture.measurements}
    sources = LOADERS[tool].SOURCES
    assert [
        key for key in sources if not any(fnmatchcase(m, key) for m in metrics)
    ] == []
    assert [m for m in metrics if not any(fnmatchcase(m, key) for key in sources)] == []


@pytest.mark.parametrize("tool", LOADERS)
def test_explain_prints_lines_for_a_terminal(tool, capsys):
    path = raw_files(GOLDEN / tool)[0]
    main(["load", "--explain", str(path)])
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{path}: ")
    assert lines[0].startswith(f"loader {tool}: ")
    assert any(line.startswith("taken by its content: ") for line in lines)
    assert [line for line in lines if len(line) > 90] == []


def test_explain_tells_from_where_each_value_comes(capsys):
    assert main(["load", "--explain", str(IPERF3)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "throughput, 1 value: end.sum_received: bytes * 8 / seconds" in shown
    assert "retransmits, 1 value: end.sum_sent.retransmits" in shown
    assert "jitter" not in shown


# ---- recognising fast ---------------------------------------------------------------


@pytest.mark.parametrize("tool", OPENING)
def test_how_a_file_opens_decides_as_all_loaders_together_do(tool, shared):
    corpus = [one for one in (shared / "corpus").rglob("*") if one.is_file()]
    taken = 0
    for path in [*GOLDEN.glob("*/*"), *corpus]:
        for raw in loaders.read_all(path):
            if isinstance(raw, RawFile) and LOADERS[tool].OPENS.match(raw.head):
                assert [n for n, one in LOADERS.items() if one.sniff(raw)] == [tool]
                taken += 1
    assert taken


@pytest.mark.parametrize("name", ["v312-tcp-fwd.json", "v312-tcp-bidir-p2-omit1.json"])
def test_the_fast_way_through_iperf3_gives_what_the_slow_one_gives(name, monkeypatch):
    path = GOLDEN / "iperf3" / name
    fast = loaders.load(path)
    monkeypatch.setattr(iperf3, "strict_json", lambda _raw: text.NOT_STRICT)
    assert loaders.load(path) == fast


def test_a_key_that_stands_twice_is_never_read_fast():
    raw = loaders.read(GOLDEN / "iperf3" / "v37-tcp-bidir-p2.json")
    assert raw.data.count(b'"sum"') > len(json.loads(raw.data)["intervals"])
    directions = {one.labels["direction"] for one in iperf3.load(raw).measurements}
    assert directions == {"forward", "reverse"}


def test_many_intervals_are_what_single_ones_are():
    labels = {"direction": "forward"}
    assert intervals("throughput", labels, [0.0, 1.0], [1.0, 2.0], [5.0, 6.0]) == [
        Measurement(metric="throughput", value=v, start_s=s, end_s=s + 1, labels=labels)
        for s, v in ((0.0, 5.0), (1.0, 6.0))
    ]


# ---- many files ---------------------------------------------------------------------


def test_files_are_loaded_as_they_are_taken(tmp_path):
    for number in range(40):
        (tmp_path / f"{number:02}.json").write_bytes(IPERF3.read_bytes())
    captures, errors = listing.loaded([tmp_path])
    assert next(captures).path == tmp_path / "00.json"
    (tmp_path / "39.json").unlink()
    assert len(list(captures)) == 38
    assert "39.json: not a file" in str(errors[0])


def test_a_table_holds_every_measurement_of_its_grain(tmp_path):
    captures, _ = listing.loaded([IPERF3, GOLDEN / "nstat" / "cap-delta.txt"])
    table = listing.load_table(captures, "run")
    assert list(table["path"].unique()) == [
        str(IPERF3),
        str(GOLDEN / "nstat/cap-delta.txt"),
    ]
    (row,) = table[table["metric"] == "throughput"].to_dict("records")
    assert (row["unit"], row["labels"], row["cumulative"]) == ("bit/s", "", False)
    assert pd.isna(row["start_s"])
    assert table[table["tool"] == "nstat"]["cumulative"].all()


@pytest.mark.parametrize("grain", ["run", "interval"])
def test_a_table_of_nothing_has_its_columns(grain):
    assert list(listing.load_table([], grain).columns) == (
        next(listing.load_csv([], grain)).strip().split(",")
    )


def test_no_cell_of_csv_is_a_formula(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = "metric,unit,value,=1+1\nevent:x,1,3,=cmd|' /C calc'!A0\n"
    (tmp_path / "=cmd.csv").write_text(text)
    assert main(["load", "--format", "csv", "=cmd.csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["path"], row["labels"]) == (
        "'=cmd.csv",
        "'=1+1==cmd|' /C calc'!A0",
    )
    assert row["value"] == "3.0"


def test_the_csv_of_two_files_has_one_head():
    captures, _ = listing.loaded([IPERF3, IPERF3])
    lines = "".join(listing.load_csv(captures, "run")).splitlines()
    assert sum(line.startswith("path,tool,") for line in lines) == 1


# ---- studies ------------------------------------------------------------------------


def test_a_study_reads_compressed_raw_files_as_the_files(write_study):
    import gzip
    import lzma

    from patchstudy.study import open_study

    data = IPERF3.read_bytes()
    nstat = GOLDEN / "nstat" / "tcp-nat.nstat.router"
    before = Path(f"{nstat}.before.json").read_bytes()
    after = Path(f"{nstat}.after.json").read_bytes()
    run = "router/{}/boot-01/run-01/tcp"
    files = {}
    for variant in ("baseline", "patched"):
        base = run.format(variant)
        files[f"{base}.iperf3.json.gz"] = gzip.compress(data)
        files[f"{base}.nstat.router.before.json.xz"] = lzma.compress(before)
        files[f"{base}.nstat.router.after.json"] = after
    design = 'question = "?"\nunit = "run"\nblock = "boot"\n[[metrics]]\n'
    design += 'name = "throughput"\nrole = "primary"\nmargin = "2 %"\n'
    study = open_study(write_study(design, files=files))
    places = {(one.capture.tool, one.place) for r in study.runs for one in r.sources}
    assert places == {("iperf3", ""), ("nstat", "router")}
    assert study.leftovers == ()
