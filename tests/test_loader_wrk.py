"""wrk: answers that are errors count in its rate, MB are 2^20."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import load, wrk
from patchstudy.loaders import read as read_raw
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "wrk"


def golden(name):
    return wrk.load(read_raw(FILES / name))


def read(text):
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert wrk.sniff(raw)
    return wrk.load(raw)


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
        rows = [row for row in csv.DictReader(file) if row["tool"] == "wrk"]
    assert rows
    for row in rows:
        try:
            found = load(folder / row["path"])
        except CaptureError as error:
            found = error
        yield row["path"].partition("/")[2], found, json.loads(row["expected"])


def test_rate_throughput_and_latency_are_read():
    capture = golden("v410-latency.txt")
    assert whole(capture, "transaction_rate") == 171.49
    assert whole(capture, "throughput") == pytest.approx(10.77 * 2**20 * 8)
    assert whole(capture, "rtt_mean", of="request") == pytest.approx(21.31e-3)
    assert whole(capture, "rtt_p50", of="request") == pytest.approx(18.86e-3)


def test_too_few_requests_tell_no_99_percent():
    assert whole(golden("v410-latency.txt"), "rtt_p99", of="request") is None


def test_answers_that_are_errors_are_told():
    capture = golden("v410-404-non2xx.txt")
    (errors,) = [one for one in capture.measurements if one.metric == "errors"]
    assert (errors.value, errors.exposure) == (586, 586)
    assert "non-2xx" in codes(capture)


def test_socket_errors_are_added_up():
    line = "  Socket errors: connect 1, read 2, write 3, timeout 4\n"
    text = (
        (FILES / "v410-latency.txt")
        .read_text()
        .replace("Requests/sec", line + "Requests/sec")
    )
    assert whole(read(text), "errors") == 10


@pytest.mark.parametrize("text", ["1,5ms", "21.31", "21.31furlong"])
def test_a_time_without_a_known_unit_is_refused(text):
    whole_text = (FILES / "v410-latency.txt").read_text().replace("21.31ms", text)
    with pytest.raises(CaptureError, match="is not a number with one of us, ms, s"):
        read(whole_text)


def test_a_refused_connection_is_the_error():
    capture = golden("v410-err-refused.txt")
    assert capture.error.text.endswith("Connection refused")
    assert not capture.measurements


def test_output_cut_before_its_summary_is_refused():
    text = (FILES / "v410-latency.txt").read_text()
    with pytest.raises(CaptureError, match="summary is missing; was it cut short"):
        read(text[: text.index("Requests/sec")])


def test_the_corpus_gives_its_values(shared):
    for name, found, wanted in corpus(shared, "net"):
        if "error" in wanted:
            assert found.error.text == wanted["error"]
            continue
        assert whole(found, "transaction_rate") == wanted["requests_per_second"], name
        moved = wanted["transfer_bytes_per_second"] * 8
        assert whole(found, "throughput") == pytest.approx(moved)
        mean = whole(found, "rtt_mean", of="request")
        assert mean == pytest.approx(wanted["latency_avg_ms"] / 1000)


def test_of_wrk2_the_corrected_quantiles_are_read():
    text = (FILES / "v410-latency.txt").read_text()
    again = "  Uncorrected\n     50.000%   1.00ms\n"
    capture = read(text.replace("  532 requests", again + "  532 requests"))
    assert whole(capture, "rtt_p50", of="request") == pytest.approx(18.86e-3)
