"""ping of five systems: loss from counts, round trips from what is printed."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import load, ping
from patchstudy.loaders import read as read_raw
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "ping"


def golden(name):
    return ping.load(read_raw(FILES / name))


def read(text):
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert ping.sniff(raw)
    return ping.load(raw)


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
        rows = [row for row in csv.DictReader(file) if row["tool"] == "ping"]
    assert rows
    for row in rows:
        try:
            found = load(folder / row["path"])
        except CaptureError as error:
            found = error
        yield row["path"].partition("/")[2], found, json.loads(row["expected"])


SUMMARY = """\
PING 192.0.2.2 (192.0.2.2) 56(84) bytes of data.

--- 192.0.2.2 ping statistics ---
{counts}
{times}
"""


def summary(counts, times=""):
    return read(SUMMARY.format(counts=counts, times=times))


def reply(number, time, more=""):
    return f"64 bytes from 192.0.2.2: icmp_seq={number} ttl=64 time={time} ms{more}\n"


def test_loss_comes_from_the_counts_not_from_the_cut_percentage():
    capture = summary(
        "1000 packets transmitted, 948 received, 5% packet loss, time 9ms"
    )
    (loss,) = [one for one in capture.measurements if one.metric == "loss"]
    assert loss.value == pytest.approx(0.052)
    assert loss.exposure == 1000
    assert capture.workload["duration_s"] == 0.009


@pytest.mark.parametrize(
    ("line", "mean"),
    [
        pytest.param(
            "rtt min/avg/max/mdev = 1.0/2.5/4.0/0.1 ms, pipe 2", 2.5e-3, id="l"
        ),
        pytest.param("round-trip min/avg/max = 1.0/2.5/4.0 ms", 2.5e-3, id="busybox"),
        pytest.param(
            "round-trip min/avg/max/stddev = 1.0/2.5/4.0/nan ms", 2.5e-3, id="bsd nan"
        ),
        pytest.param(
            "round-trip min/avg/max/std-dev = 1.0/2.5/4.0/0.1 ms", 2.5e-3, id="macos"
        ),
    ],
)
def test_the_mean_round_trip_is_read_in_every_dialect(line, mean):
    capture = summary(
        "3 packets transmitted, 3 packets received, 0.0% packet loss", line
    )
    assert whole(capture, "rtt_mean") == pytest.approx(mean)


def test_without_an_answer_there_is_no_round_trip():
    capture = golden("iputils-20221126-loss100.txt")
    assert whole(capture, "loss") == 1
    assert whole(capture, "rtt_mean") is None
    assert "rtt-absent" in codes(capture)


def test_a_small_packet_has_no_times_but_its_loss():
    capture = golden("iputils-20221126-small-size-no-rtt.txt")
    assert whole(capture, "loss") == 0
    assert "rtt-absent" in codes(capture)


def test_packets_that_never_left_are_told():
    capture = golden("iputils-20221126-size-too-big-df.txt")
    assert whole(capture, "errors") == 3
    assert "ping-errors" in codes(capture)


def test_duplicates_are_no_answers():
    capture = golden("hand-busybox.txt")
    assert whole(capture, "loss") == 0.5
    assert capture.facts["duplicates"] == 1
    assert "duplicates" in codes(capture)


def test_a_median_needs_twenty_answers_that_are_all_printed():
    replies = "".join(reply(n, n) for n in range(1, 21)) + reply(20, 999, " (DUP!)")
    counts = "20 packets transmitted, 20 received, +1 duplicates, 0% packet loss"
    text = SUMMARY.format(counts=counts, times="").replace(
        "data.\n", f"data.\n{replies}"
    )
    assert whole(read(text), "rtt_p50") == pytest.approx(10.5e-3)
    assert whole(read(text), "rtt_p99") is None
    fewer = text.replace(reply(7, 7), "")
    assert whole(read(fewer), "rtt_p50") is None


def test_more_answers_than_requests_are_refused_with_the_likely_cause():
    with pytest.raises(CaptureError, match=r"run.txt:4: 3 answers to 2 .* duplicates"):
        summary("2 packets transmitted, 3 received, 0% packet loss")


def test_a_percentage_that_does_not_fit_is_refused():
    with pytest.raises(CaptureError, match="50 % loss does not fit 9 of 10 packets"):
        summary("10 packets transmitted, 9 received, 50% packet loss")


def test_a_decimal_comma_is_refused():
    counts = "3 packets transmitted, 3 received, 0% packet loss"
    with pytest.raises(
        CaptureError, match="'1,0' is not a number with a decimal point"
    ):
        summary(counts, "rtt min/avg/max/mdev = 1,0/2,5/4,0/0,1 ms")


def test_a_name_that_does_not_resolve_is_the_error():
    capture = golden("iputils-20221126-badhost.txt")
    assert capture.error.text.endswith("Temporary failure in name resolution")
    assert not capture.measurements


def test_a_ping_cut_short_is_refused():
    with pytest.raises(CaptureError, match="summary is missing; was it cut short"):
        read("PING 192.0.2.2 (192.0.2.2) 56(84) bytes of data.\n" + reply(1, 0.1))


def test_the_corpus_gives_its_values(shared):
    for name, found, wanted in corpus(shared, "net"):
        if "error" in wanted:
            assert found.error.text == wanted["error"], name
            continue
        assert whole(found, "loss") == pytest.approx(
            wanted["lost_percent"] / 100, abs=5e-7
        ), name
        mean = wanted.get("rtt_avg_ms", wanted.get("mean_of_lines_ms"))
        told = whole(found, "rtt_mean")
        assert (told is None) == (mean is None), name
        if mean is not None:
            assert told == pytest.approx(mean / 1000, rel=5e-3), name
        assert found.facts["duplicates"] == wanted.get("duplicates", 0)


DE = """\
PING host.example (192.0.2.1) 56(84) Bytes an Daten.
64 Bytes von host.example (192.0.2.1): icmp_seq=1 ttl=64 Zeit=24.8 ms
64 Bytes von host.example (192.0.2.1): icmp_seq=1 ttl=64 Zeit=25.9 ms (DUPLIKAT!)
64 Bytes von host.example (192.0.2.1): icmp_seq=2 ttl=64 Zeit=26.2 ms

--- host.example ping statistics ---
4 Pakete übertragen, 2 empfangen, +1 Duplikate, +2 Fehler, 50% Paketverlust, Zeit 3003ms
rtt min/avg/max/mdev = 24.800/25.633/26.200/0.600 ms
"""
FR = """\
PING 192.0.2.1 (192.0.2.1) 56(84) octets de données.
64 octets de 192.0.2.1 : icmp_seq=1 ttl=64 temps=24,8 ms
64 octets de 192.0.2.1 : icmp_seq=1 ttl=64 temps=25,9 ms (DUPLICATA !)
64 octets de 192.0.2.1 : icmp_seq=2 ttl=64 temps=26,2 ms

--- statistiques ping 192.0.2.1 ---
4 paquets transmis, 2 reçus, +1 doublons, +2 erreurs, 50 % paquets perdus, temps 3003 ms
rtt min/moy/max/mdev = 24,800/25,633/26,200/0,600 ms
"""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(DE, id="German"),
        pytest.param(FR, id="French, with commas"),
        pytest.param(
            FR.replace("octets de données", "bytes of data"), id="head not translated"
        ),
    ],
)
def test_another_language_of_ping_says_the_same(text):
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert ping.sniff(raw)
    capture = ping.load(raw)
    assert whole(capture, "loss") == 0.5
    assert whole(capture, "rtt_mean") == pytest.approx(25.633e-3)
    assert whole(capture, "errors") == 2
    assert capture.facts["duplicates"] == 1
    assert capture.workload["duration_s"] == 3.003
    assert capture.workload["payload_byte"] == 56


def test_the_stamp_of_the_first_answer_tells_the_start():
    stamped = (
        "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n"
        "[1700000000.500000] 64 bytes from 192.0.2.1: icmp_seq={} time=700 ms\n\n"
        "--- 192.0.2.1 ping statistics ---\n"
        "1 packets transmitted, 1 received, 0% packet loss, time 0ms\n"
        "rtt min/avg/max/mdev = 700.0/700.0/700.0/0.000 ms\n"
    )
    first = ping.load(RawFile.of(Path("run.txt"), stamped.format(1).encode()))
    assert first.started_at == "2023-11-14T22:13:19Z"
    later = ping.load(RawFile.of(Path("run.txt"), stamped.format(2).encode()))
    assert later.started_at is None
