"""iperf 2's text and CSV: who counted, which way, and sums that are too high."""

import csv
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchstudy.errors import CaptureError
from patchstudy.loaders import iperf2, iperf2_csv, read
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders"
NAMES = sorted(path.name for path in (FILES / "iperf2").glob("*.txt"))

TCP = """\
------------------------------------------------------------
Client connecting to 192.0.2.2, TCP port 5001
TCP window size: 16.0 KByte (default)
------------------------------------------------------------
[  3] local 192.0.2.1 port 49597 connected with 192.0.2.2 port 5001
[ ID] Interval       Transfer     Bandwidth
[  3]  0.0- 1.0 sec  28.6 MBytes   240 Mbits/sec
[  3]  1.0- 2.0 sec  25.9 MBytes   217 Mbits/sec
[  3]  0.0- 2.0 sec  54.5 MBytes   229 Mbits/sec
"""
UDP = """\
Client connecting to 192.0.2.2, UDP port 5001
Sending 1470 byte datagrams, IPG target: 588.00 us (kalman adjust)
[  3] local 192.0.2.1 port 49597 connected with 192.0.2.2 port 5001
[ ID] Interval       Transfer     Bandwidth
[  3]  0.0- 2.0 sec  5.00 MBytes  21.0 Mbits/sec
[  3] Sent 3567 datagrams
"""
REPORT = """\
[  3] Server Report:
[  3]  0.0- 2.0 sec  4.75 MBytes  19.9 Mbits/sec   0.017 ms  178/ 3567 (5%)
"""


def load(name):
    return iperf2.load(read(FILES / "iperf2" / name))


def load_csv(name):
    return iperf2_csv.load(read(FILES / "iperf2_csv" / name))


def load_text(text, loader=iperf2):
    return loader.load(RawFile.of(Path("run.txt"), text.encode()))


def value(capture, metric, **labels):
    values = [
        one.value
        for one in capture.measurements
        if one.metric == metric and one.start_s is None and one.labels == labels
    ]
    assert len(values) <= 1
    return values[0] if values else None


def intervals(capture, metric):
    return [
        one.value
        for one in capture.measurements
        if one.metric == metric and one.start_s is not None
    ]


def codes(capture):
    return [one.code for one in capture.caveats]


# Text


def test_the_final_row_is_the_run_and_the_others_are_intervals():
    capture = load_text(TCP)
    assert value(capture, "throughput") == pytest.approx(229e6)
    assert intervals(capture, "send_rate") == pytest.approx([240e6, 217e6])
    assert capture.workload["duration_s"] == 2.0
    assert "counted-by-sender" in codes(capture)


def test_the_sum_is_made_of_the_streams_over_the_longest_time():
    capture = load("v218-text-tcp-p3.txt")
    size = (29.1 + 23.4 + 22.6) * 2**20
    assert value(capture, "throughput") == pytest.approx(size * 8 / 3.2868)
    assert "sum-corrected" in codes(capture)


def test_mbytes_per_second_are_of_1024_squared_byte():
    assert value(load("v218-text-tcp-fM.txt"), "throughput") == 22.9 * 2**20 * 8


def test_a_star_marks_the_reverse_direction():
    capture = load("v218-text-tcp-fullduplex.txt")
    assert value(capture, "throughput", direction="forward") == pytest.approx(199e6)
    assert value(capture, "throughput", direction="reverse") == pytest.approx(192e6)


def test_a_dual_test_is_told_apart_by_the_servers_port():
    capture = load("v218-text-tcp-dualtest-d.txt")
    assert value(capture, "throughput", direction="forward") == pytest.approx(189e6)
    assert value(capture, "throughput", direction="reverse") == pytest.approx(183e6)
    assert capture.workload["direction"] == "bidir"


def test_the_servers_file_of_a_dual_test_is_seen_from_the_client_too():
    head = "Server listening on UDP port 5001\n"
    accepted = "[  3] local 192.0.2.2 port 5001 connected with 192.0.2.1 port 4000\n"
    back = (
        "Client connecting to 192.0.2.1, UDP port 5001\n"
        "[  5] local 192.0.2.2 port 5000 connected with 192.0.2.1 port 5001\n"
    )
    rows = (
        "[  3]  0.0- 2.0 sec  4.75 MBytes  19.9 Mbits/sec   0.017 ms  5/ 3567 (0%)\n"
        "[  5]  0.0- 2.0 sec  2.50 MBytes  10.5 Mbits/sec\n"
    )
    capture = load_text(head + accepted + back + rows)
    assert capture.workload["direction"] == "bidir"
    assert value(capture, "throughput", direction="forward") == pytest.approx(19.9e6)
    assert value(capture, "send_rate", direction="reverse") == pytest.approx(10.5e6)


def test_enhanced_output_tells_retries_and_a_start_in_utc():
    capture = load("v218-text-tcp-e.txt")
    assert value(capture, "retransmits") == 0
    assert capture.started_at == "2026-11-30T14:14:17Z"


def test_a_start_in_another_zone_is_unknown():
    text = TCP.replace(
        "port 5001\n[ ID", "port 5001 on 2026-11-30 14:14:17 (CET)\n[ ID"
    )
    capture = load_text(text)
    assert capture.started_at is None
    assert "clock-unknown" in codes(capture)


def test_udp_throughput_and_loss_are_the_servers():
    capture = load_text(UDP + REPORT)
    assert value(capture, "send_rate") == pytest.approx(21.0e6)
    assert value(capture, "throughput") == pytest.approx(19.9e6)
    assert value(capture, "loss") == 178 / 3567
    assert capture.workload["target_bitrate"] == pytest.approx(20e6)


@pytest.mark.parametrize(
    "end",
    ["", "WARNING: did not receive ack of last datagram after 10 tries.\n"],
)
def test_udp_without_a_server_prints_a_result_that_is_not_believed(end):
    capture = load_text(UDP + end)
    assert value(capture, "throughput") is None
    assert value(capture, "loss") is None
    assert "receiver-unknown" in codes(capture)


def test_two_server_reports_are_added():
    capture = load("v218-text-udp-10m-decimal.txt")
    assert value(capture, "throughput") == pytest.approx((9.73 + 9.61) * 1e6)
    assert value(capture, "loss") == (72 + 78) / (2554 + 2555)


def test_histograms_between_the_rows_are_passed_over():
    capture = load("v218-text-udp-histograms-server.txt")
    assert intervals(capture, "throughput") == pytest.approx([5.26e6, 5.24e6, 5.24e6])


def test_a_bounceback_of_no_message_has_no_round_trip():
    text = (FILES / "iperf2" / "v218-text-bounceback.txt").read_text(encoding="utf-8")
    none = "0=0.000/0.000/0.000/0.000 ms"
    empty = re.sub(r"\d+=[\d./]+ ms", none, text)
    assert none in empty
    capture = load_text(empty)
    assert capture.measurements == ()
    assert capture.facts["bounces"] == 0
    assert "rtt_mean_s" not in capture.facts
    assert "rtt-absent" in codes(capture)


def test_bounceback_is_a_round_trip_and_no_throughput():
    capture = load("v218-text-bounceback.txt")
    assert value(capture, "rtt_mean") == pytest.approx(168e-6)
    assert value(capture, "throughput") is None
    assert capture.facts["bounces"] == 31


def test_a_refused_connection_is_a_failed_run():
    capture = load("v218-err-refused.txt")
    assert capture.error.text == "tcp connect failed: Connection refused"
    assert capture.measurements == ()


def test_an_error_alone_is_a_failed_run_of_iperf2():
    raw = RawFile.of(Path("run.csv"), b"tcp connect failed: Connection refused\n")
    assert iperf2.sniff(raw)
    assert iperf2.load(raw).error.text == "tcp connect failed: Connection refused"


def test_sums_alone_are_the_run_with_a_doubt():
    rows = TCP.replace("[  3]  ", "[SUM-3] ")
    capture = load_text(rows)
    assert value(capture, "throughput") == 229e6
    assert intervals(capture, "send_rate") == [240e6, 217e6]
    assert "sum-only" in codes(capture)
    assert capture.workload["streams"] is None


def test_an_interrupted_run_is_doubted():
    assert "interrupted" in codes(
        load_text(TCP.replace("[  3]  0.0- 2", "^C[  3]  0.0- 2"))
    )


def test_without_the_final_row_there_are_intervals_only():
    capture = load_text(TCP[: TCP.rindex("[  3]")])
    assert value(capture, "throughput") is None
    assert "cut-short" in codes(capture)


def test_two_runs_in_one_file_are_two_documents():
    capture = load_text(TCP + TCP.replace("229", "231"))
    assert value(capture, "throughput", document="2") == pytest.approx(231e6)


def test_the_tests_that_one_server_prints_are_documents():
    head = "Server listening on TCP port 5001\n"
    one = (
        "[  {0}] local 192.0.2.2 port 5001 connected with 192.0.2.1 port 400{0}\n"
        "[ ID] Interval       Transfer     Bandwidth\n"
        "[  {0}] 0.0000-3.1759 sec  71.6 MBytes   19{0} Mbits/sec\n"
    )
    capture = load_text(head + one.format(1) + one.format(2))
    assert value(capture, "throughput", document="2") == pytest.approx(192e6)
    assert capture.facts["seen_from"] == "server"


# CSV


def test_csv_without_a_sum_row_is_added_up():
    capture = load_csv("v218-csv-tcp-p3.csv")
    assert value(capture, "throughput") == 64666469 + 63664385 + 64000751
    assert len(intervals(capture, "throughput")) == 3


def test_csv_of_a_udp_server_tells_the_loss():
    capture = load_csv("v218-csv-udp-server.csv")
    assert value(capture, "loss") == 168 / 5353
    assert value(capture, "throughput") == 20462448


HEAD = "time,srcaddress,srcport,dstaddr,dstport,transferid,istart,iend,bytes,speed"
ENDS = "+0000:20260605191028.955,192.0.2.1,43380,192.0.2.2,5001"


def of_csv(text):
    return load_text(text, iperf2_csv)


def told(capture, metric):
    return [
        one.value
        for one in capture.measurements
        if one.metric == metric and one.start_s is None and "stream" not in one.labels
    ]


@pytest.mark.parametrize(
    ("head", "interval", "rest"),
    [
        pytest.param(
            f"{HEAD},writecnt,writeerr,tcpretry,tcpcwnd,tcppcwnd,tcprtt,tcprttvar\n",
            "0.0,10.0",
            "-1,-1,4294967295,-1,4294967295,0,0",
            id="2.2 client",
        ),
        pytest.param(
            f"{HEAD},readcnt,bin0,bin1,bin2,bin3,bin4,bin5,bin6,bin7\n",
            "0.0,10.0",
            "5,1,2,3,4,5,6,7,8",
            id="2.2 server",
        ),
        pytest.param("", "0.0-10.0", "-1,-1,-1,-1,0,0", id="2.1.9"),
    ],
)
def test_the_columns_of_enhanced_csv_are_no_jitter_and_no_loss(head, interval, rest):
    capture = of_csv(f"{head}{ENDS},1,{interval},1000000,800000,{rest}\n")
    assert told(capture, "throughput") == [800000]
    assert capture.workload["protocol"] == "TCP"
    assert not told(capture, "loss")


def test_enhanced_csv_of_a_udp_server_tells_the_loss_also_from_sums_alone():
    head = (
        f"{HEAD},jitter,errors,datagrams,errpercent,outoforder,writecnt,writeerr,pps\n"
    )
    row = "0.0,10.0,7844390400,6275636577,0.000,179685,5516005,3.258,0"
    capture = of_csv(f"{head}{ENDS},-1,{row},5336321,0,533642.566123\n")
    assert told(capture, "loss") == [pytest.approx(179685 / 5516005)]
    assert told(capture, "throughput") == [6275636577]


def test_enhanced_csv_of_a_udp_client_is_what_it_sent():
    head = f"{HEAD},writecnt,writeerr,pps\n"
    capture = of_csv(f"{head}{ENDS},1,0.0,10.0,1000000,800000,681,0,68.1\n")
    assert told(capture, "send_rate") == [800000]
    assert not told(capture, "throughput")


def test_csv_of_two_sources_is_not_added_up():
    capture = load_csv("v218-csv-tcp-dualtest-d.csv")
    assert value(capture, "throughput", source="192.0.2.2") == 185719500
    assert value(capture, "throughput") is None
    assert "clock-unknown" in codes(capture)


def test_csv_of_a_udp_client_does_not_tell_what_arrived():
    row = "19700101000000,192.0.2.1,4,192.0.2.2,5001,1,0.0-3.0,7864500,20957000"
    capture = load_text(f"{row},0.000,0,-1,-0.000,0\n", iperf2_csv)
    assert value(capture, "send_rate") == 20957000
    assert value(capture, "throughput") is None
    assert value(capture, "loss") is None
    assert "receiver-unknown" in codes(capture)


def test_csv_intervals_of_a_udp_client_are_what_it_sent():
    head = "20260101000000,192.0.2.1,4,192.0.2.2,5001,1,"
    capture = of_csv(
        f"{head}0.0-1.0,125000,1000000,0.000,0,85,0.000,0\n"
        f"{head}1.0-2.0,125000,1000000,0.000,0,85,0.000,0\n"
        f"{head}0.0-2.0,250000,1000001,0.000,0,-1,-0.000,0\n"
        f"{head}0.0-2.0,245000,980000,0.011,3,170,1.765,0\n"
    )
    assert intervals(capture, "send_rate") == [1e6, 1e6]
    assert intervals(capture, "throughput") == []
    assert value(capture, "send_rate") == 1000001
    assert value(capture, "throughput") == 980000
    assert value(capture, "loss") == 3 / 170


def test_csv_with_the_heads_of_a_server_is_read_by_the_rows():
    row = "19700101000000,192.0.2.1,4,192.0.2.2,5001,1,0.0-3.0,7864500,20957000\n"
    text = row + TCP[: TCP.index("[  3]")] + row.replace("2.1,", "2.9,")
    raw = RawFile.of(Path("run.csv"), text.encode())
    assert not iperf2.sniff(raw)
    assert iperf2_csv.sniff(raw)
    assert value(iperf2_csv.load(raw), "throughput", source="192.0.2.9") == 20957000


def test_old_csv_has_a_servers_row_beside_the_clients():
    row = "20120101000000,192.0.2.1,4,192.0.2.2,5001,3,0.0-10.0,1312710,"
    text = f"{row}1049955\n{row}1049951,0.016,9,900,1.000,0\n"
    capture = load_text(text, iperf2_csv)
    assert value(capture, "send_rate") == 1049955
    assert value(capture, "throughput") == 1049951
    assert value(capture, "loss") == 0.01


def test_a_cut_row_is_refused_with_its_line():
    row = "19700101000000,192.0.2.1,4,192.0.2.2,5001,1,0.0-3.0,7864500,20957000\n"
    with pytest.raises(CaptureError, match=r"run.txt:2: not the columns .* cut short"):
        load_text(row + row[:40], iperf2_csv)


@pytest.mark.parametrize(
    "text",
    [
        "Connecting to host 192.0.2.2, port 5201\n",
        "[  5]   0.00-1.00   sec  36.4 MBytes   305 Mbits/sec    0    164 KBytes\n",
        "1,2,3\n",
        "",
    ],
)
def test_other_files_are_not_taken_for_iperf2(text):
    raw = RawFile.of(Path("x.txt"), text.encode())
    assert not iperf2.sniff(raw)
    assert not iperf2_csv.sniff(raw)


# Laws


@given(st.sampled_from(NAMES), st.integers(0, 1000), st.text(max_size=4))
def test_any_damaged_text_is_read_or_refused(name, place, damage):
    text = (FILES / "iperf2" / name).read_text()
    at = place * len(text) // 1000
    try:
        capture = load_text(text[:at] + damage + text[at + len(damage) :])
    except CaptureError:
        return
    assert all(0 <= one.value < float("inf") for one in capture.measurements)


# The corpus beside the checkout


def rows(shared):
    with (shared / "corpus/net/MANIFEST.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            path = shared / "corpus/net" / row["path"]
            if row["tool"] == "iperf2" and path.stat().st_size:
                yield path, json.loads(row["expected"])


def test_the_corpus_is_read_as_it_was_worked_out_by_hand(shared):
    seen = 0
    for path, expected in rows(shared):
        loader = iperf2_csv if path.suffix == ".csv" else iperf2
        raw = read(path)
        assert loader.sniff(raw)
        capture = loader.load(raw)
        assert bool(capture.error) == ("error" in expected), path.name
        near = max(expected.get("tolerance_rel", 0), 1e-4)
        for key, metric in (
            ("throughput_bits_per_second", "throughput"),
            ("sender_bits_per_second", "send_rate"),
        ):
            if key in expected:
                want = pytest.approx(expected[key], rel=near)
                assert value(capture, metric) == want, path.name
                seen += 1
        if "lost_percent" in expected:
            want = pytest.approx(expected["lost_percent"] / 100, abs=1e-5)
            assert value(capture, "loss") == want, path.name
    assert seen > 20


def test_both_directions_of_one_address_are_not_added_up():
    text = (  # iperf 2.1.8 --full-duplex over a loopback
        "20261201033646,127.0.0.1,53814,127.0.0.1,5654,1,0.0-2.0,5242940,20510770\n"
        "20261201033646,127.0.0.1,5654,::,0,1,0.0-2.1,5242880,19978422\n"
    )
    capture = iperf2_csv.load(RawFile.of(Path("run.csv"), text.encode()))
    found = {one.labels["source"]: one.value for one in capture.measurements}
    assert found == {"127.0.0.1": 20510770.0, "127.0.0.1 port 5654": 19978422.0}
    assert capture.workload["direction"] == "bidir"


#: iperf 2.2.1 -u -e -y C and -u -y C over a loopback: the client, then the server.
UDP_22 = {
    "client -e": (
        (
            "time,srcaddress,srcport,dstaddr,dstport,transferid,istart,iend,bytes,speed,"
            "jitter,errors,datagrams,errpercent,outoforder,writecnt,writeerr,writetimeo,"
            "pps\n"
            "+0000:20261201033844.710997,127.0.0.1,42468,127.0.0.1,5691,1,0.0,1.0,1243620,"
            "9948960,0.000,0,846,0.000,0,846,0,0,846.000000\n"
            "+0000:20261201033844.714638,127.0.0.1,42468,127.0.0.1,5691,1,0.0,2.0,2497530,"
            "9971966,-1.000,0,-1,-0.000,0,1699,0,0,566.666667\n"
        ),
        {"send_rate": 9971966.0},
    ),
    "server -e": (
        (
            "+0000:20261201033844.714644,127.0.0.1,42468,127.0.0.1,5691,1,0.0,2.0,2497530,"
            "10000415,0.005,17,1700,1.000,0,1700,0,0,849.500000\n"
        ),
        {"throughput": 10000415.0, "loss": 0.01, "jitter": 5e-6},
    ),
    "client": (
        (
            "20261201033834,127.0.0.1,56028,127.0.0.1,5688,1,0.0-1.0,1250970,10007760,"
            "0.000,0,851,0.000,0\n"
            "20261201033834,127.0.0.1,56028,127.0.0.1,5688,1,0.0-2.0,2503410,10005300,-nan,"
            "0,-1,-0.000,0\n"
        ),
        {"send_rate": 10005300.0},
    ),
    "server of two": (
        (
            "20261201033837,127.0.0.1,3,127.0.0.1,5689,1,0.0-2.0,1252440,4994949,0.002,5,"
            "1704,0.293,0\n"
            "20261201033837,127.0.0.1,0,0.0.0.0,5689,-1,0.0-2.0,2497530,9972369,-nan,5,1704,"
            "0.293,0\n"
        ),
        {"throughput": 4994949.0, "loss": 5 / 1704, "jitter": 2e-6},
    ),
}


@pytest.mark.parametrize("name", UDP_22)
def test_udp_rows_of_22_tell_who_wrote_them(name):
    text, wanted = UDP_22[name]
    raw = RawFile.of(Path("run.csv"), text.encode())
    assert iperf2_csv.sniff(raw)
    capture = iperf2_csv.load(raw)
    assert capture.workload["protocol"] == "UDP"
    found = {m.metric: m.value for m in capture.measurements if m.start_s is None}
    assert found == pytest.approx(wanted)


#: iperf 2.0.14a -e --full-duplex over a loopback: the client, then the server.
ONE_ID = {
    "client": """\
Client connecting to 127.0.0.1, TCP port 5606 with pid 1 (1 flows)
[  3] local 127.0.0.1 port 56724 connected with 127.0.0.1 port 5606 (full-duplex)
[ ID] Interval            Transfer    Bandwidth       Reads=Dist
[  3] 0.0000-1.0000 sec  2.50 MBytes  21.0 Mbits/sec  21=1:0:0:0:0:0:0:20
[ ID] Interval            Transfer    Bandwidth       Write/Err  Rtry     Cwnd/RTT
[  3] 0.0000-1.0000 sec  2.38 MBytes  19.9 Mbits/sec  21/0          0     1023K/119 us
[FD3] 0.0000-1.0000 sec  5.00 MBytes  41.9 Mbits/sec
[  3] 0.0000-2.0459 sec  5.13 MBytes  21.0 Mbits/sec  0/0          0       NA/0 us  0.00
[  3] 0.0000-2.0972 sec  5.00 MBytes  20.0 Mbits/sec  41=1:0:0:0:0:0:0:40
""",
    "server": """\
Server listening on TCP port 5606 with pid 1
[  4] local 127.0.0.1 port 5606 connected with 127.0.0.1 port 56724 (full-duplex)
[  4] 0.0000-2.0448 sec  5.12 MBytes  20.0 Mbits/sec  0/0          0       NA/0 us  0.00
[  4] 0.0000-2.0489 sec  5.00 MBytes  21.0 Mbits/sec  41=1:0:0:0:0:0:0:40
""",
}


@pytest.mark.parametrize("side", ONE_ID)
def test_both_directions_under_one_id_are_told_apart(side):
    capture = iperf2.load(RawFile.of(Path("run.txt"), ONE_ID[side].encode()))
    found = {
        one.labels["direction"]: one.value
        for one in capture.measurements
        if one.start_s is None and one.metric in {"throughput", "send_rate"}
    }
    assert found == {"forward": 21.0e6, "reverse": 20.0e6}
    assert capture.workload["direction"] == "bidir"


def test_both_directions_added_up_are_no_throughput():
    text = ONE_ID["client"].partition("[ ID]")[0] + (
        "[  3] 0.0000-1.0000 sec  4.88 MBytes  40.9 Mbits/sec\n"
        "[  3] 0.0000-2.0973 sec  10.1 MBytes  40.5 Mbits/sec\n"
    )
    capture = iperf2.load(RawFile.of(Path("run.txt"), text.encode()))
    assert capture.measurements == ()
    assert "added up under one id; run --full-duplex with -e" in capture.error.text


def test_the_servers_report_below_the_rows_is_named():
    text = (  # iperf 2.0.14a -u -y C
        "20261201033452,127.0.0.1,45801,127.0.0.1,5622,3,0.0-2.0,2503486,10005289,0.000,"
        "0,-1,-0.000,0\n[  3] Sent 1705 datagrams\n[  3] Server Report:\n"
        "[  3] 0.0000-2.0016 sec  2.39 MBytes  10.0 Mbits/sec   0.001 ms    0/ 1704"
        " (0%)\n"
    )
    capture = iperf2_csv.load(RawFile.of(Path("run.csv"), text.encode()))
    assert {"report-unread", "receiver-unknown"} <= {o.code for o in capture.caveats}
    assert [one.metric for one in capture.measurements] == ["send_rate"]
