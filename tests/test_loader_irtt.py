"""irtt: JSON in nanoseconds, text in durations of Go, loss of either way."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import irtt, load
from patchstudy.loaders import read as read_raw
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "irtt"


def golden(name):
    return irtt.load(read_raw(FILES / name))


def read(text):
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert irtt.sniff(raw)
    return irtt.load(raw)


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
        rows = [row for row in csv.DictReader(file) if row["tool"] == "irtt"]
    assert rows
    for row in rows:
        try:
            found = load(folder / row["path"])
        except CaptureError as error:
            found = error
        yield row["path"].partition("/")[2], found, json.loads(row["expected"])


def test_every_round_trip_of_the_json_is_an_interval():
    name = "v090-loss-trimmed.json"
    document = json.loads((FILES / name).read_text(encoding="utf-8"))
    trips = [one for one in document["round_trips"] if one["lost"] == "false"]
    found = [one for one in golden(name).measurements if one.start_s is not None]
    assert [one.value * 1e9 for one in found] == pytest.approx(
        [one["delay"]["rtt"] for one in trips]
    )
    assert found[0].end_s - found[0].start_s == pytest.approx(0.02)


def test_the_json_behind_the_text_is_read():
    name = "v090-loss-trimmed.json"
    text = "[Connecting] connecting to 192.0.2.2\nseq=0 rtt=1ms\n"
    capture = read(text + (FILES / name).read_text(encoding="utf-8"))
    assert capture.measurements == golden(name).measurements
    assert capture.started_at == golden(name).started_at


def test_the_json_tells_which_way_packets_got_lost():
    capture = golden("v090-loss-trimmed.json")
    assert whole(capture, "loss") == pytest.approx(6 / 99)
    assert whole(capture, "loss", direction="upload") == pytest.approx(6 / 99)
    assert whole(capture, "loss", direction="download") == 0


def test_times_of_the_json_are_nanoseconds():
    capture = golden("v090-loss-trimmed.json")
    assert whole(capture, "rtt_mean") == pytest.approx(222613e-9)
    assert whole(capture, "rtt_p50") == pytest.approx(213888e-9)
    assert whole(capture, "jitter") == pytest.approx(52384e-9)
    assert capture.started_at == "2026-11-30T14:24:01Z"
    assert capture.tool_version == "0.9.0"


def test_the_text_gives_the_mean_of_its_lines():
    capture = golden("v090-basic.txt")
    assert whole(capture, "rtt_mean") == pytest.approx(706.65e-6, rel=1e-5)
    assert whole(capture, "rtt_p50") == pytest.approx(212e-6)
    assert capture.workload["duration_s"] == 2.98
    assert "clock-unknown" in codes(capture)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("1m2.5s", 62.5, id="minutes"),
        pytest.param("962ns", 962e-9, id="nanoseconds"),
        pytest.param("70.8µs", 70.8e-6, id="microseconds"),
        pytest.param("4.34ms", 4.34e-3, id="milliseconds"),
    ],
)
def test_a_duration_of_go_is_read(text, seconds):
    raw = RawFile.of(Path("run.txt"), b"")
    assert irtt._seconds(raw, text, "1") == pytest.approx(seconds)


def test_a_duration_with_a_comma_is_refused():
    text = (FILES / "v090-basic.txt").read_text().replace("rtt=142µs", "rtt=1,42ms")
    with pytest.raises(CaptureError, match=r"run.txt:3: '1,42ms' is not a duration"):
        read(text)


def test_a_refused_connection_is_the_error():
    capture = golden("v090-noserver.txt")
    assert capture.error.text.endswith("connection refused")
    assert not capture.measurements


def test_more_packets_back_than_sent_are_refused():
    document = json.loads((FILES / "v090-loss-trimmed.json").read_text())
    document["stats"]["packets_received"] = 100
    with pytest.raises(CaptureError, match="100 packets came back of 99 sent"):
        read(json.dumps(document, indent=1))


def test_the_corpus_gives_its_values(shared):
    for name, found, wanted in corpus(shared, "net"):
        if "error" in wanted:
            assert found.error.text == wanted["error"]
            continue
        mean = wanted.get("rtt_mean_ns", 0) * 1e-9 or wanted["rtt_mean_us"] * 1e-6
        assert whole(found, "rtt_mean") == pytest.approx(mean, rel=1e-5), name
        lost = wanted.get("lost_percent", 0) / 100
        assert whole(found, "loss") == pytest.approx(lost, rel=1e-4)
        if "rtt_median_ns" in wanted:
            assert whole(found, "rtt_p50") == pytest.approx(
                wanted["rtt_median_ns"] / 1e9
            )


def test_the_start_of_091_is_nanoseconds_since_1970():
    document = json.loads(read_raw(FILES / "v090-loss-trimmed.json").text)
    wall = {"wall": 1796096424418773988, "monotonic": 31153276}
    document["stats"]["start_time"] = wall
    capture = read(json.dumps(document, indent=1))
    assert capture.started_at == "2026-12-01T03:40:24Z"
    document["stats"]["start_time"] = {"monotonic": 31153276}
    assert "clock-unknown" in codes(read(json.dumps(document, indent=1)))
