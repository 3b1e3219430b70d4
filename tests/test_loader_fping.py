"""fping: counts, lists of times, and the total below interval summaries."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import fping, load
from patchstudy.loaders import read as read_raw
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "fping"


def golden(name):
    return fping.load(read_raw(FILES / name))


def read(text):
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert fping.sniff(raw)
    return fping.load(raw)


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
        rows = [row for row in csv.DictReader(file) if row["tool"] == "fping"]
    assert rows
    for row in rows:
        try:
            found = load(folder / row["path"])
        except CaptureError as error:
            found = error
        yield row["path"].partition("/")[2], found, json.loads(row["expected"])


def test_a_list_gives_loss_and_mean():
    capture = read("192.0.2.2 : 1.0 - 3.0 -\n")
    assert whole(capture, "loss", host="192.0.2.2") == 0.5
    assert whole(capture, "rtt_mean", host="192.0.2.2") == pytest.approx(2e-3)


def test_a_silent_host_has_loss_but_no_round_trip():
    capture = golden("v51-c5.txt")
    assert whole(capture, "loss", host="192.0.2.77") == 1
    assert whole(capture, "rtt_mean", host="192.0.2.77") is None
    assert whole(capture, "rtt_mean", host="192.0.2.2") == pytest.approx(50e-6)
    assert "rtt-absent" in codes(capture)


def test_the_total_is_read_not_the_summary_of_an_interval():
    capture = golden("v51-Q1-o.txt")
    (loss,) = [one for one in capture.measurements if one.metric == "loss"]
    assert (loss.value, loss.exposure) == (0.2, 30)


def test_interval_summaries_without_their_total_are_refused():
    text = (FILES / "v51-Q1-o.txt").read_text().splitlines(keepends=True)
    with pytest.raises(CaptureError, match="summary is missing; was it cut short"):
        read("".join(text[:-1]))


def test_more_answers_than_requests_are_refused_with_the_likely_cause():
    line = "h : xmt/rcv/%return = 10/12/120%, min/avg/max = 0.1/0.2/0.3\n"
    with pytest.raises(CaptureError, match=r"12 answers to 10 requests.*duplicates"):
        read(line)


def test_who_is_alive_is_no_number():
    with pytest.raises(CaptureError, match="call fping with -c or -C"):
        read("192.0.2.2 is alive\n192.0.2.77 is unreachable\n")


def test_the_running_percentages_of_the_lines_are_not_read():
    line = "h : [0], 64 bytes, 0.047 ms (0.047 avg, 0% loss)\n"
    with pytest.raises(CaptureError, match="summary is missing"):
        read(line)


def test_the_corpus_gives_its_values(shared):
    for name, found, wanted in corpus(shared, "net"):
        for host, counts in wanted["hosts"].items():
            lost = whole(found, "loss", host=host)
            assert lost == pytest.approx(counts["lost_percent"] / 100), name
            mean = counts["rtt_avg_ms"]
            told = whole(found, "rtt_mean", host=host)
            assert (told is None) == (mean is None)
            if mean is not None:
                assert told == pytest.approx(mean / 1000, rel=2e-3)
