"""h2load: bodies over the run, and runs in which every request failed."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import h2load, load
from patchstudy.loaders import read as read_raw
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "h2load"


def golden(name):
    return h2load.load(read_raw(FILES / name))


def read(text):
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert h2load.sniff(raw)
    return h2load.load(raw)


def whole(capture, metric, **labels):
    """Return the value of the whole run with exactly these labels; None for none."""
    found = [
        one.value
        for one in capture.measurements
        if one.metric == metric and one.labels == labels and one.start_s is None
    ]
    assert len(found) <= 1
    return found[0] if found else None


def codes(capture):
    return {one.code for one in capture.caveats}


def corpus(shared, part):
    """Yield the capture or the error of every file of this tool, with its row."""
    folder = shared / "corpus" / part
    with (folder / "MANIFEST.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["tool"] == "h2load"]
    assert rows
    for row in rows:
        try:
            found = load(folder / row["path"])
        except CaptureError as error:
            found = error
        yield row["path"].partition("/")[2], found, json.loads(row["expected"])


def test_rate_bodies_and_the_mean_time_are_read():
    capture = golden("v1520-h1.txt")
    assert whole(capture, "transaction_rate") == 161.85
    assert whole(capture, "throughput") == pytest.approx(19660800 * 8 / 1.85)
    assert whole(capture, "rtt_mean", of="request") == pytest.approx(11.1e-3)
    assert capture.workload["streams"] == 2


def test_a_run_in_which_all_failed_has_no_time():
    capture = golden("v1520-fail.txt")
    assert whole(capture, "transaction_rate") == 0
    assert whole(capture, "errors") == 10
    assert whole(capture, "rtt_mean", of="request") is None
    assert {"requests-failed", "rtt-absent", "zero-throughput"} <= codes(capture)


def test_output_cut_before_its_summary_is_refused():
    text = (FILES / "v1520-h1.txt").read_text()
    with pytest.raises(CaptureError, match="summary is missing; was it cut short"):
        read(text[: text.index("finished")])


def test_a_comma_in_the_rate_is_refused():
    text = (FILES / "v1520-h1.txt").read_text().replace("161.85 req/s", "161,85 req/s")
    with pytest.raises(CaptureError, match="'161,85' is not a rate"):
        read(text)


def test_the_corpus_gives_its_values(shared):
    for name, found, wanted in corpus(shared, "net"):
        assert whole(found, "transaction_rate") == wanted["requests_per_second"], name
        assert whole(found, "errors") == wanted["failed"]
        assert found.workload["duration_s"] == pytest.approx(wanted["duration_s"])
        assert found.facts["data_byte"] == wanted["data_bytes"]


def test_the_table_of_newer_versions_has_quantiles():
    capture = golden("v170-h1.txt")
    assert whole(capture, "rtt_mean", of="request") == pytest.approx(5.59e-3)
    assert whole(capture, "rtt_p50", of="request") == pytest.approx(4.31e-3)
    assert whole(capture, "rtt_p99", of="request") == pytest.approx(20.95e-3)
    assert "rtt-absent" not in codes(capture)
