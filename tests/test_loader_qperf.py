"""qperf: decimal units, the receiver of a stream, half round trips."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import load, qperf
from patchstudy.loaders import read as read_raw
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "qperf"


def golden(name):
    return qperf.load(read_raw(FILES / name))


def read(text):
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert qperf.sniff(raw)
    return qperf.load(raw)


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
        rows = [row for row in csv.DictReader(file) if row["tool"] == "qperf"]
    assert rows
    for row in rows:
        try:
            found = load(folder / row["path"])
        except CaptureError as error:
            found = error
        yield row["path"].partition("/")[2], found, json.loads(row["expected"])


def test_every_test_has_its_label():
    capture = golden("v0411-tcp_bw_lat.txt")
    assert whole(capture, "throughput", test="tcp_bw") == 192e6
    assert whole(capture, "throughput", test="udp_bw") == pytest.approx(191.2e6)
    assert whole(capture, "send_rate", test="udp_bw") == pytest.approx(195.2e6)
    assert whole(capture, "rtt_mean", test="tcp_lat") == pytest.approx(44.6e-6)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        pytest.param("1.17 GB/sec", 9.36e9, id="gigabytes"),
        pytest.param("9.41 Gb/sec", 9.41e9, id="gigabits"),
        pytest.param("800 KB/sec", 6.4e6, id="kilobytes"),
        pytest.param("12 bytes/sec", 96, id="bytes"),
    ],
)
def test_prefixes_are_decimal(text, rate):
    capture = read(f"tcp_bw:\n    bw  =  {text}\n")
    assert whole(capture, "throughput", test="tcp_bw") == pytest.approx(rate)


def test_the_last_digit_is_the_third():
    (rate, *_) = golden("v0411-tcp_bw_lat.txt").measurements
    assert rate.resolution == pytest.approx(0.8e6)


def test_other_values_are_events_with_their_unit():
    capture = read("tcp_lat:\n    latency  =  22.3 us\n    msg_rate  =  44.8 K/sec\n")
    assert whole(capture, "event:msg_rate", test="tcp_lat", unit="K/sec") == 44.8


def test_the_machines_that_conf_prints_are_passed_over():
    conf = "conf:\n    loc_node   =  a\n    rem_qperf  =  0.4.11\n"
    for text in (conf, "warning: obsolete option: -u; use -uu instead\n"):
        capture = read(text + "tcp_bw:\n    bw  =  12.1 MB/sec\n")
        assert whole(capture, "throughput", test="tcp_bw") == pytest.approx(96.8e6)
        assert capture.error is None


def test_an_unknown_unit_is_refused():
    with pytest.raises(CaptureError, match=r"run.txt:2: unknown unit 'furlong'"):
        read("tcp_lat:\n    latency  =  22.3 furlong\n")


def test_a_failed_test_is_the_error_and_gives_no_number():
    capture = read("tcp_lat:\n    latency  =  2 us\nudp_bw:\nfailed to connect\n")
    assert capture.error.text == "failed to connect"
    assert not capture.measurements


def test_the_same_test_twice_is_refused():
    with pytest.raises(CaptureError, match="tcp_lat stands twice"):
        read("tcp_lat:\n    latency  =  2 us\n" * 2)


def test_the_corpus_gives_its_values(shared):
    for name, found, wanted in corpus(shared, "net"):
        rate = wanted["tcp_bw_bits_per_second"]
        assert whole(found, "throughput", test="tcp_bw") == pytest.approx(rate), name
        half = whole(found, "rtt_mean", test="udp_lat") / 2
        assert half == pytest.approx(wanted["udp_lat_us"] * 1e-6)
        assert "loss-absent" in codes(found)
