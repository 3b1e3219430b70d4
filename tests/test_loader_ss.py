"""ss: data sockets told from control sockets, totals of retransmits."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import load, ss
from patchstudy.loaders import read as read_raw
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "ss"


def golden(name):
    return ss.load(read_raw(FILES / name))


def read(text):
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert ss.sniff(raw)
    return ss.load(raw)


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
        rows = [row for row in csv.DictReader(file) if row["tool"] == "ss"]
    assert rows
    for row in rows:
        try:
            found = load(folder / row["path"])
        except CaptureError as error:
            found = error
        yield row["path"].partition("/")[2], found, json.loads(row["expected"])


SOCKET = """\
ESTAB 0 0 192.0.2.1:{port} 192.0.2.2:5201
\t cubic rto:204 rtt:{rtt}/0.1 mss:1448 bytes_sent:{sent} bytes_acked:{sent} {more}
"""


def socket(port, sent, rtt=10.0, more="data_segs_out:100"):
    return SOCKET.format(port=port, sent=sent, rtt=rtt, more=more)


def test_the_control_socket_is_only_a_fact():
    capture = read(
        socket(1, 185, rtt=0.5) + socket(2, 4000000) + socket(3, 2000000, 20)
    )
    assert capture.workload["streams"] == 2
    assert whole(capture, "rtt_mean") == pytest.approx(15e-3)
    assert whole(capture, "rtt_mean", stream="2") == pytest.approx(20e-3)
    assert [one["control"] for one in capture.facts["sockets"]] == [True, False, False]
    assert "control-sockets" in codes(capture)


def test_the_total_of_retransmits_is_read_not_those_in_flight():
    capture = golden("iproute6.1-tin-cubic-loss.txt")
    assert whole(capture, "retransmits", stream="1") == 23
    assert whole(capture, "retransmits") == 68


def test_ss_leaves_out_a_total_of_none():
    (again,) = [
        one
        for one in read(socket(2, 4000000)).measurements
        if one.metric == "retransmits"
    ]
    assert (again.value, again.exposure) == (0, 100)


def test_dumps_with_a_time_give_what_was_acknowledged_between_them():
    text = f"1796049605.0\n{socket(2, 1000000)}1796049606.0\n{socket(2, 2000000)}"
    capture = read(text)
    (rate,) = [one for one in capture.measurements if one.metric == "throughput"]
    assert (rate.value, rate.start_s, rate.end_s) == (8e6, 0, 1)
    assert capture.started_at == "2026-11-30T14:40:05Z"


def test_the_form_of_one_line_is_read():
    capture = golden("iproute6.1-tinHO-polling.txt")
    assert capture.facts["states_read"] == 9
    assert whole(capture, "rtt_mean") == pytest.approx(10.89e-3, rel=1e-3)


def test_lines_of_standard_error_do_no_harm():
    capture = golden("iproute6.1-tinem-cubic.txt")
    assert whole(capture, "rtt_mean") == pytest.approx(21.797e-3)


def test_without_information_it_says_how_to_call_ss():
    with pytest.raises(CaptureError, match="call ss with -i"):
        read("ESTAB 0 0 192.0.2.1:2 192.0.2.2:5201\n")


def test_listening_sockets_only_are_refused():
    with pytest.raises(CaptureError, match="no established TCP socket"):
        read("LISTEN 0 5 *:5201 *:*\n\t cubic rto:1000 mss:536 cwnd:10\n")


def test_the_corpus_gives_its_values(shared):
    for name, found, wanted in corpus(shared, "net"):
        assert found.facts["states_read"] == wanted["sockets"], name
        if name.endswith("polling.txt"):
            continue
        sockets = found.facts["sockets"]
        assert [one["rtt_s"] for one in sockets] == pytest.approx(
            [rtt / 1000 for rtt in wanted["rtt_ms"]]
        )
        rates = [one["delivery_rate_bit_per_s"] for one in sockets]
        assert rates == wanted["delivery_rate_bps"]
        assert [one["cwnd"] for one in sockets] == wanted["cwnd"]
        assert [one["congestion"] for one in sockets] == wanted["congestion"]
        totals = [total for _now, total in wanted.get("retrans", [])]
        assert sum(one["retrans"] for one in sockets) == sum(totals)
