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
    (loss,) = [
        one
        for one in capture.measurements
        if one.metric == "loss" and one.start_s is None
    ]
    assert (loss.value, loss.exposure) == (0.2, 30)


def spans(capture, metric, host):
    return [
        (one.start_s, one.end_s, one.value)
        for one in capture.measurements
        if (one.metric, one.labels.get("host")) == (metric, host)
        and one.start_s is not None
    ]


def test_each_interval_summary_is_an_interval():
    capture = golden("v51-Q1-o.txt")
    host = "192.0.2.2"
    assert spans(capture, "loss", host) == [(0.0, 1.0, 0.2), (1.0, 2.0, 0.2)]
    assert [one[2] for one in spans(capture, "rtt_mean", host)] == [37e-6, 54e-6]


def test_interval_summaries_without_their_total_are_those_of_a_cut_run():
    text = (FILES / "v51-Q1-o.txt").read_text().splitlines(keepends=True)
    capture = read("".join(text[:-1]))
    assert "summary is missing; was it cut short" in capture.error.text
    assert whole(capture, "loss", host="192.0.2.2") is None
    assert len(spans(capture, "loss", "192.0.2.2")) == 2


#: fping 5.5 -Q 1,cumulative -c 6 -p 500, a captured run.
CUMULATIVE = """\
[23:59:59]
127.0.0.1 : xmt/rcv/%loss = 2/2/0%, outage(ms) = 0, min/avg/max = 0.021/0.023/0.026
[00:00:00]
127.0.0.1 : xmt/rcv/%loss = 4/4/0%, outage(ms) = 0, min/avg/max = 0.021/0.032/0.052
127.0.0.1 : xmt/rcv/%loss = 6/6/0%, outage(ms) = 0, min/avg/max = 0.021/0.035/0.052
"""


def test_summaries_that_count_from_the_start_are_no_intervals():
    capture = read(CUMULATIVE)
    assert spans(capture, "rtt_mean", "127.0.0.1") == []
    assert "interval-unread" in codes(capture)
    assert whole(capture, "rtt_mean", host="127.0.0.1") == pytest.approx(35e-6)


def test_intervals_go_on_over_midnight():
    capture = read(CUMULATIVE.replace("= 4/4/0%", "= 2/2/0%"))
    assert [one[:2] for one in spans(capture, "loss", "127.0.0.1")] == [(0, 1), (1, 2)]


def test_one_stamp_does_not_tell_how_long_an_interval_is():
    capture = read("".join(CUMULATIVE.splitlines(keepends=True)[2:]))
    assert spans(capture, "loss", "127.0.0.1") == []
    assert "interval-unread" in codes(capture)


def test_an_interval_with_answers_of_an_earlier_one_has_no_loss():
    text = CUMULATIVE.replace("%loss = 4/4/0%", "%return = 2/3/150%")
    capture = read(text)
    assert [one[2] for one in spans(capture, "loss", "127.0.0.1")] == [0.0]
    assert "loss-absent" in codes(capture)
    assert len(spans(capture, "rtt_mean", "127.0.0.1")) == 2


#: fping 5.5 -J -D -c 4, and -J -Q 1: captured runs, each cut to one host.
STAMPED_JSON = """\
{"resp": {"timestamp": "1796094048.91477", "host": "127.0.0.1", "seq": 0, "size": 64, \
"rtt": 0.043}}
{"summary": {"host": "127.0.0.1", "xmt": 1, "rcv": 1, "loss": 0, "outage(ms)": 0, \
"rttMin": 0.043, "rttAvg": 0.043, "rttMax": 0.043}}
"""
INTERVAL_JSON = """\
{"intSum": {"time": 1796094046,"host": "127.0.0.1", "xmt": 2, "rcv": 1, "loss": 50, \
"rttMin": 0.029, "rttAvg": 0.035, "rttMax": 0.040}}
{"intSum": {"time": 1796094047,"host": "127.0.0.1", "xmt": 2, "rcv": 0, "loss": 100}}
{"summary": {"host": "127.0.0.1", "xmt": 6, "rcv": 1, "loss": 83, "rttAvg": 0.040}}
"""


def test_the_json_tells_its_start_by_its_stamps():
    assert of_json(STAMPED_JSON).started_at == "2026-12-01T03:00:48Z"
    assert of_json(INTERVAL_JSON).started_at == "2026-12-01T03:00:45Z"


def test_the_json_has_intervals_too():
    capture = of_json(INTERVAL_JSON)
    assert spans(capture, "loss", "127.0.0.1") == [(0.0, 1.0, 0.5), (1.0, 2.0, 1.0)]
    assert spans(capture, "rtt_mean", "127.0.0.1") == [(0.0, 1.0, pytest.approx(35e-6))]


@pytest.mark.parametrize(
    ("stamp", "started_at"),
    [
        ("2026-12-01T03:00:50+0100", "2026-12-01T02:00:49Z"),
        ("2026-12-01 03:00:50", None),
        ("Tue Dec  1 03:00:50 2026", None),
    ],
)
def test_a_stamp_with_a_zone_tells_the_start(stamp, started_at):
    line = f"[{stamp}] h : [0], 64 bytes, 0.021 ms (0.021 avg, 0% loss)\n"
    total = "\nh : xmt/rcv/%loss = 1/1/0%, min/avg/max = 0.021/0.021/0.021\n"
    assert read(line + total).started_at == started_at


def test_more_answers_than_requests_are_refused_with_the_likely_cause():
    line = "h : xmt/rcv/%return = 10/12/120%, min/avg/max = 0.1/0.2/0.3\n"
    with pytest.raises(CaptureError, match=r"12 answers to 10 requests.*duplicates"):
        read(line)


def test_stamps_tell_the_start_in_utc():
    line = "192.0.2.2 (192.0.2.2) : [0], 64 bytes, 500 ms (500 avg, 0% loss)\n"
    total = "\n192.0.2.2 (192.0.2.2) : xmt/rcv/%loss = 1/1/0%, min/avg/max = 1/500/1\n"
    assert read(line + total).started_at is None
    capture = read("[1700000000.25000] " + line + total)
    assert capture.started_at == "2023-11-14T22:13:19Z"
    assert whole(capture, "rtt_mean", host="192.0.2.2") == 0.5


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


JSON = """\
{"resp": {"host": "192.0.2.1", "seq": 0, "size": 64, "rtt": 5.12}}
{"timeout": {"host": "192.0.2.1", "seq": 1}}
{"resp": {"host": "192.0.2.1", "seq": 2, "size": 64, "rtt": 5.14}}
{"intSum": {"time": 1733560000, "host": "192.0.2.1", "xmt": 1, "rcv": 1, "loss": 0}}
{"later": {"host": "192.0.2.1"}}
{"summary": {"host": "192.0.2.1", "xmt": 3, "rcv": 2, "loss": 33, "rttAvg": 5.13}}
{"summary": {"host": "192.0.2.9", "xmt": 3, "rcv": 0, "loss": 100}}
{"stats": {"targets": 2, "alive": 1}}
"""


def of_json(text):
    raw = RawFile.of(Path("run.json"), text.encode())
    assert fping.sniff(raw)
    return fping.load(raw)


def told(capture):
    return {(one.metric, one.labels["host"]): one.value for one in capture.measurements}


def test_the_counts_of_the_json_are_the_loss():
    values = told(of_json(JSON))
    assert values["loss", "192.0.2.1"] == pytest.approx(1 / 3)
    assert values["rtt_mean", "192.0.2.1"] == pytest.approx(5.13e-3)
    assert values["loss", "192.0.2.9"] == 1
    assert ("rtt_mean", "192.0.2.9") not in values


def test_null_in_the_values_of_the_json_is_a_loss():
    text = '{"vSum": {"host": "192.0.2.1", "values": [1.0, null, 3.0, 2.0]}}\n'
    values = told(of_json(text))
    assert values["loss", "192.0.2.1"] == 0.25
    assert values["rtt_mean", "192.0.2.1"] == pytest.approx(2e-3)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(JSON[: JSON.index('{"int')], "summary is missing", id="cut"),
        pytest.param(JSON[:-20] + "\n", "8: not one object", id="cut in a line"),
        pytest.param(JSON.replace('"rcv": 2', '"rcv": 5'), "5 answers to 3", id="more"),
        pytest.param(JSON.replace("5.13", '"x"'), "'x' is not a time", id="no time"),
    ],
)
def test_json_that_cannot_be_is_refused_with_its_line(text, problem):
    with pytest.raises(CaptureError, match=problem):
        of_json(text)
