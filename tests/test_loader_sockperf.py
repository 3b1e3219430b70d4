"""sockperf: half round trips, colour codes, and a sender that counts itself."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import load, sockperf
from patchstudy.loaders import read as read_raw
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "sockperf"


def golden(name):
    return sockperf.load(read_raw(FILES / name))


def read(text):
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert sockperf.sniff(raw)
    return sockperf.load(raw)


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
        rows = [row for row in csv.DictReader(file) if row["tool"] == "sockperf"]
    assert rows
    for row in rows:
        try:
            found = load(folder / row["path"])
        except CaptureError as error:
            found = error
        yield row["path"].partition("/")[2], found, json.loads(row["expected"])


def test_a_latency_is_half_of_a_round_trip():
    capture = golden("v37-pingpong-udp.txt")
    assert whole(capture, "rtt_mean") == pytest.approx(2 * 17.753e-6)
    assert whole(capture, "rtt_p50") == pytest.approx(2 * 10.173e-6)
    assert whole(capture, "rtt_p99") == pytest.approx(2 * 113.851e-6)


def test_with_full_rtt_it_is_the_whole_round_trip():
    capture = golden("v37-pingpong-tcp-full-rtt.txt")
    assert whole(capture, "rtt_mean") == pytest.approx(21.677e-6)
    assert capture.workload["protocol"] == "TCP"


def test_answers_are_counted_over_the_valid_duration():
    capture = golden("v37-pingpong-udp.txt")
    assert whole(capture, "transaction_rate") == pytest.approx(71670 / 2.549)


def test_few_answers_to_many_messages_are_no_loss():
    capture = golden("v37-underload-loss.txt")
    assert whole(capture, "loss") is None
    assert whole(capture, "drops") == 2
    assert whole(capture, "rtt_p99") is None
    assert "answers-sampled" in codes(capture)


def test_throughput_is_what_the_sender_counts():
    capture = golden("v37-throughput-udp.txt")
    assert whole(capture, "send_rate") == pytest.approx(51395 * 1400 * 8 / 3.001)
    assert whole(capture, "throughput") is None
    assert "throughput-absent" in codes(capture)


def test_without_the_size_the_bandwidth_is_of_2_to_the_20():
    lines = (FILES / "v37-throughput-udp.txt").read_text().splitlines(keepends=True)
    capture = read("".join(line for line in lines if "NOTE" not in line))
    assert whole(capture, "send_rate") == pytest.approx(22.868 * 2**20 * 8)
    assert "size-unknown" in codes(capture)


def test_no_answer_at_all_is_the_error():
    capture = golden("v37-no-reply-udp.txt")
    assert capture.error.text.startswith("No messages were received from the server")


def test_output_cut_before_its_result_is_refused():
    text = (FILES / "v37-pingpong-udp.txt").read_text()
    with pytest.raises(CaptureError, match="result is missing; was it cut short"):
        read(text[: text.index("[Valid")])


def test_the_corpus_gives_its_values(shared):
    for name, found, wanted in corpus(shared, "net"):
        if "error" in wanted:
            assert found.error.text == wanted["error"]
        elif "avg_us" in wanted:
            factor = 1e-6 if wanted["kind"] == "rtt" else 2e-6
            assert whole(found, "rtt_mean") == pytest.approx(wanted["avg_us"] * factor)
            assert found.facts["messages_received"] == wanted["received"]
            assert whole(found, "drops") == wanted["dropped"]
        else:
            rate = wanted["throughput_bits_per_second"]
            assert whole(found, "send_rate") == pytest.approx(rate), name


def test_a_run_without_valid_observations_says_so():
    text = (
        "sockperf: == version #3.7-no.git ==\n"
        "sockperf: [Total Run] RunTime=1.001 sec; Warm up time=400 msec;"
        " SentMessages=6680; ReceivedMessages=6679\n"
        "sockperf: No valid observations found. Try tune parameters: --time\n"
    )
    assert "No valid observations found" in read(text).error.text
