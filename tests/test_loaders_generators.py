"""nuttcp, ethr, uperf, ntttcp, pktgen, TRex, testpmd: whose count it is and of what."""

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchstudy.errors import CaptureError
from patchstudy.loaders import LOADERS, read
from patchstudy.records import RawFile

GOLDEN = Path(__file__).parent / "golden" / "loaders"
TOOLS = ("ethr", "ntttcp", "nuttcp", "pktgen", "testpmd", "trex", "trex_screen")
TOOLS += ("ntttcp_linux", "uperf")
NAMES = sorted(
    f"{tool}/{path.name}"
    for tool in TOOLS
    for path in (GOLDEN / tool).glob("*")
    if path.name != "SOURCE" and ".expected." not in path.name
)


def load(name):
    return LOADERS[name.partition("/")[0]].load(read(GOLDEN / name))


def load_text(tool, text):
    return LOADERS[tool].load(RawFile.of(Path("run.txt"), text.encode()))


def text_of(name):
    return (GOLDEN / name).read_text()


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


# nuttcp


def test_nuttcp_blocks_tell_sender_and_receiver_apart():
    capture = load("nuttcp/v612-tcp-v.txt")
    assert value(capture, "send_rate") == pytest.approx(197.3159e6)
    assert value(capture, "throughput") == pytest.approx(192.2573e6)
    assert value(capture, "retransmits") == 0
    assert capture.tool_version == "6.1.2"


def test_nuttcp_intervals_come_before_the_summary():
    capture = load("nuttcp/v612-tcp-r-i1.txt")
    assert intervals(capture, "throughput") == pytest.approx(
        [192.4077e6, 191.8898e6, 190.7291e6]
    )
    assert value(capture, "throughput") == pytest.approx(191.899e6)
    assert capture.workload["duration_s"] == 3.06


@pytest.mark.parametrize(
    ("name", "lost", "packets"),
    [
        ("nuttcp/v612-udp-loss.txt", 293, 7122),
        ("nuttcp/v612-udp-loss-fparse.txt", 206, 5358),
    ],
)
def test_nuttcp_tells_the_loss_in_both_forms(name, lost, packets):
    assert value(load(name), "loss") == lost / packets


UDP_BLOCKS = """\
nuttcp-t: v6.1.2: socket
nuttcp-t: buflen=1024, nstream=1, port=5001 udp -> 192.0.2.2
nuttcp-t: 1.1895 MB in 2.00 real seconds = 609.02 KB/sec = 4.9890 Mbps
nuttcp-r: v6.1.2: socket
nuttcp-r: 1.1777 MB in 1.99 real seconds = 606.01 KB/sec = 4.9645 Mbps
nuttcp-r: 12 / 1218 drop/pkt 0.99% data loss
"""


def test_nuttcps_verbose_receiver_tells_the_loss():
    capture = load_text("nuttcp", UDP_BLOCKS)
    assert value(capture, "loss") == 12 / 1218
    assert capture.workload["protocol"] == "UDP"


PARSED_BLOCKS = """\
nuttcp-t: v6.1.2: socket
nuttcp-t: buflen=8192 nstream=1 port=5001 mode=udp host=192.0.2.2
nuttcp-t: megabytes=0.6016 real_seconds=1.01 rate_KBps=609.02 rate_Mbps=4.9891

nuttcp-r: v6.1.2: socket
nuttcp-r: buflen=8192 nstream=1 port=5001 mode=udp
nuttcp-r: megabytes=0.5938 real_seconds=1.01 rate_KBps=602.10 rate_Mbps=4.9324
nuttcp-r: drop=1 pkt=77 data_loss=1.29870
nuttcp-r: megabytes=0.5938 cpu_seconds=0.00 KB_per_cpu_second=318675.63
"""


def test_nuttcps_blocks_for_programs_say_the_same():
    capture = load_text("nuttcp", PARSED_BLOCKS)
    assert value(capture, "send_rate") == pytest.approx(4.9891e6)
    assert value(capture, "throughput") == pytest.approx(4.9324e6)
    assert value(capture, "loss") == 1 / 77
    assert capture.workload["protocol"] == "UDP"


def test_nuttcps_udp_without_its_drops_has_no_loss():
    line = "    1.1904 MB /   2.00 sec =    4.9864 Mbps 48 %TX 0 %RX 0.00 %loss\n"
    capture = load_text("nuttcp", line)
    assert capture.workload["protocol"] == "UDP"
    assert value(capture, "loss") is None
    assert codes(capture) == ["loss-absent"]


def test_nuttcp_with_parallel_streams_counts_no_retransmits():
    capture = load("nuttcp/v612-tcp-N3.txt")
    assert value(capture, "retransmits") is None
    assert "retransmits-absent" in codes(capture)


def test_nuttcp_without_a_summary_gives_intervals_only():
    text = text_of("nuttcp/v612-tcp-r-i1.txt").split("\n\n")[0] + "\n"
    capture = load_text("nuttcp", text)
    assert value(capture, "throughput") is None
    assert "cut-short" in codes(capture)


def test_nuttcp_without_a_server_is_a_failed_run():
    capture = load("nuttcp/v612-err-noserver.txt")
    assert capture.error.text == "connect: Connection refused"


def test_nuttcp_results_in_a_row_are_documents():
    line = (
        "   70.1822 MB /   3.07 sec =  191.8958 Mbps 0 %TX 2 %RX 0 retrans 0.06 msRTT\n"
    )
    capture = load_text("nuttcp", line + line.replace("191.8958", "190.0000"))
    assert value(capture, "throughput", document="2") == pytest.approx(190e6)


# ethr


def test_ethr_takes_the_sum_of_its_connections():
    capture = load("ethr/head-tcp-bandwidth-n4.txt")
    assert intervals(capture, "throughput") == pytest.approx(
        [492.4e6, 403.6e6, 391.9e6]
    )
    assert value(capture, "throughput") == pytest.approx(429.3e6)
    assert "counted-by-client" in codes(capture)


def test_an_old_ethr_is_no_iperf3_though_it_connects_alike():
    text = (
        "Connecting to host [192.0.2.2], port 9999\n"
        "[  6] local 192.0.2.1 port 46108 connected to 192.0.2.2 port 9999\n"
        "- - - - - - - - - - - - - - - - - - - - - - -\n"
        "[ ID]   Protocol    Interval      Bits/s\n"
        "[  6]     TCP      000-001 sec   1.54M\n"
        "[  6]     TCP      001-002 sec   1.56M\n"
        "Ethr done, duration: 2s.\n"
    )
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert [name for name, one in LOADERS.items() if one.sniff(raw)] == ["ethr"]
    assert intervals(LOADERS["ethr"].load(raw), "throughput") == [1.54e6, 1.56e6]


def test_ethrs_log_gives_the_same_and_the_start():
    capture = load("ethr/head-tcp-bandwidth-n4-log.jsonl")
    assert value(capture, "throughput") == pytest.approx(429.3e6)
    assert capture.started_at == "2026-11-30T14:41:26Z"


def test_ethrs_1k_is_coarse_and_says_so():
    capture = load("ethr/head-tcp-cps.txt")
    assert intervals(capture, "transaction_rate") == [1000, 954, 1000]
    assert "coarse-resolution" in codes(capture)


def test_ethrs_latencies_have_units_of_their_own():
    capture = load("ethr/head-tcp-latency.txt")
    assert intervals(capture, "rtt_mean")[0] == pytest.approx(918.473e-6)
    assert intervals(capture, "rtt_p99")[0] == pytest.approx(9.453e-3)


def test_ethrs_udp_client_tells_what_it_sent():
    text = text_of("ethr/head-tcp-bandwidth-n4.txt").replace(" TCP ", " UDP ")
    capture = load_text("ethr", text)
    assert value(capture, "throughput") is None
    assert value(capture, "send_rate") == pytest.approx(429.3e6)
    assert "receiver-unknown" in codes(capture)


def test_ethr_without_a_server_is_a_failed_run():
    assert "connection refused" in load("ethr/head-err-noserver.txt").error.text


# uperf


def test_uperf_divides_by_the_time_of_the_test_and_not_of_its_set_up():
    capture = load("uperf/v1-stream-tcp-R-raw.txt")
    assert value(capture, "throughput") == pytest.approx(157155311 * 8 / 3.2030466)
    assert len(intervals(capture, "throughput")) == 3
    assert capture.facts["master_bit_per_s_with_setup"] == pytest.approx(236.94e6)


def test_uperf_lines_written_over_themselves_are_read():
    capture = load("uperf/v1-rr-tcp.txt")
    assert value(capture, "throughput") == pytest.approx(6.76e6)
    assert capture.facts["operations_per_second"] == 13194


def test_uperf_udp_is_counted_at_the_sender_and_lost_at_the_slave():
    capture = load("uperf/v1-stream-udp-loss.txt")
    assert value(capture, "throughput") is None
    assert value(capture, "send_rate") == pytest.approx(204.51e6)
    assert value(capture, "loss") == pytest.approx(1 - 42.58 / 78.38)


def test_uperf_totals_alone_tell_no_rate():
    lines = text_of("uperf/v1-stream-udp-loss.txt").replace("udp", "tcp").splitlines()
    text = "\n".join(line for line in lines if "Txn" not in line) + "\n"
    capture = load_text("uperf", text)
    assert value(capture, "throughput") is None
    assert "throughput-absent" in codes(capture)


# ntttcp


def test_ntttcp_tells_one_element_from_another_by_its_place_and_unit():
    capture = load("ntttcp/tcp-receiver.xml")
    assert value(capture, "throughput") == pytest.approx(1000 * 2**20 * 8 / 10)
    assert value(capture, "throughput", stream="2") == pytest.approx(
        335.544e6, rel=1e-5
    )
    assert value(capture, "cpu_busy", side="local") == pytest.approx(0.3687)
    assert value(capture, "retransmits") is None


def test_ntttcps_sender_counts_retransmits():
    capture = load("ntttcp/tcp-sender.xml")
    assert value(capture, "retransmits") == 9
    assert "counted-by-sender" in codes(capture)


def test_ntttcps_udp_sender_has_no_throughput():
    capture = load("ntttcp/udp-sender.xml")
    assert value(capture, "throughput") is None
    assert value(capture, "send_rate") == pytest.approx(838.8608e6)


def test_ntttcps_text_has_mbytes_of_1024_squared_byte():
    capture = load("ntttcp/tcp-receiver.txt")
    assert value(capture, "throughput") == pytest.approx(838.8608e6)
    assert capture.workload["streams"] == 2


def test_a_bytes_and_time_that_contradict_the_printed_rate_are_doubted():
    text = text_of("ntttcp/tcp-sender.xml").replace(
        '<throughput metric="mbps">838.861</throughput>\n  <total_buffers>',
        '<throughput metric="mbps">600.000</throughput>\n  <total_buffers>',
    )
    capture = load_text("ntttcp", text)
    assert value(capture, "throughput") == pytest.approx(838.8608e6)
    assert "totals-differ" in codes(capture)


def test_ntttcp_for_linux_is_payload_over_the_test_and_cpu_of_the_machine():
    capture = load("ntttcp_linux/sender.txt")
    assert value(capture, "throughput") == pytest.approx(941.2e6)
    assert value(capture, "retransmits") == 12
    assert value(capture, "cpu_busy") == pytest.approx(0.3975)
    assert value(capture, "cpu_softirq") == 0.28
    assert "counted-by-sender" in codes(capture)


def test_ntttcp_for_linux_that_sends_udp_does_not_know_what_arrived():
    text = text_of("ntttcp_linux/sender.txt")
    capture = load_text("ntttcp_linux", text.replace("\n-", "\nprotocol:\t UDP\n-", 1))
    assert value(capture, "throughput") is None
    assert value(capture, "send_rate") == pytest.approx(941.2e6)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param("941.20Mbps", "9412.0Mbps", "bytes are not 9412.0Mbps", id="rate"),
        pytest.param("941.20Mbps", "941.20MB/s", "no known unit", id="unit"),
        pytest.param("test duration", "duration", "totals of ntttcp", id="cut"),
    ],
)
def test_totals_of_ntttcp_for_linux_that_cannot_be_are_refused(old, new, words):
    text = text_of("ntttcp_linux/sender.txt").replace(old, new)
    with pytest.raises(CaptureError, match=words):
        load_text("ntttcp_linux", text)


def test_ntttcp_for_linux_without_a_receiver_is_a_failed_run():
    text = "NTTTCP for Linux 1.4.0\n10:00:00 ERR : failed to connect to receiver\n"
    assert load_text("ntttcp_linux", text).error.text == "failed to connect to receiver"


def test_cut_xml_is_refused():
    text = text_of("ntttcp/tcp-sender.xml")
    with pytest.raises(CaptureError, match="was it cut short"):
        load_text("ntttcp", text[: len(text) // 2])


# pktgen


def test_pktgen_is_a_sender():
    capture = load("pktgen/eth0-60byte.txt")
    assert value(capture, "packet_rate") == 200_000
    assert value(capture, "send_rate") == 96e6
    assert value(capture, "throughput") is None
    assert value(capture, "errors") == 12
    assert "stopped-early" in codes(capture)
    assert capture.started_at is None


def test_pktgens_bits_may_hold_more_than_the_packets():
    text = text_of("pktgen/eth0-60byte.txt").replace("96000000bps", "102400000bps")
    assert "frame-size" in codes(load_text("pktgen", text))


def test_pktgens_mixed_sizes_are_no_contradiction():
    capture = load("pktgen/imix.txt")
    assert capture.workload["packet_size"] is None
    assert "imix" in codes(capture)
    assert "frame-size" not in codes(capture)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Result: OK: 4000000(c3999995+d5)", "Result: Idle", "Result: Idle"),
        ("Result:", "Nothing:", "still running"),
        ("pps", "", "was the file cut short"),
    ],
)
def test_pktgen_without_a_result_is_a_failed_run(old, new, words):
    text = text_of("pktgen/eth0-60byte.txt").replace(old, new)
    assert words in load_text("pktgen", text).error.text


# TRex and testpmd


def test_trex_loss_is_what_the_other_port_sent():
    capture = load("trex/two-ports.txt")
    assert value(capture, "loss") == pytest.approx(0.055)
    assert value(capture, "loss", port="0") == pytest.approx(0.1)
    assert value(capture, "loss", port="1") == pytest.approx(0.01)
    assert value(capture, "throughput") == 46080000.0 + 50688000.0


def test_trex_that_got_more_than_it_sent_has_no_loss():
    text = text_of("trex/two-ports.txt").replace("900000,", "1900000,")
    text = text.replace('"ipackets": 1890000', '"ipackets": 2890000')
    capture = load_text("trex", text)
    assert value(capture, "loss") is None
    assert "loss-absent" in codes(capture)


def test_trexs_wrapper_tells_rates_and_no_loss():
    capture = load("trex/wrapper-log.txt")
    assert value(capture, "packet_rate") == 19990.5
    assert value(capture, "loss") is None
    assert {"more-received", "loss-absent"} <= set(codes(capture))
    assert capture.started_at == "2026-11-30T12:00:00Z"
    assert capture.workload["duration_s"] == 30


def test_trexs_screens_are_intervals_and_the_idle_ones_no_part_of_the_rate():
    capture = load("trex_screen/three-screens.txt")
    assert intervals(capture, "throughput") == [1267200 * 4, 1267200 * 4]
    assert value(capture, "throughput") == 1267200 * 4
    assert value(capture, "send_rate") == 1280000 * 4
    assert value(capture, "packet_rate") == 4950
    assert value(capture, "loss") == 100 / 20000  # of the summary, with late frames
    assert value(capture, "errors", direction="received") == 3


def test_one_screen_of_trex_has_averages_with_a_doubt():
    text = text_of("trex_screen/three-screens.txt")
    second = "-Per port" + text.split("-Per port")[2]
    capture = load_text("trex_screen", second)
    assert value(capture, "throughput") == pytest.approx(5.07e6)
    assert value(capture, "loss") == 0.01
    assert "moving-average" in codes(capture)


def test_a_screen_without_counters_is_refused():
    with pytest.raises(CaptureError, match="no counters of TRex's ports"):
        load_text("trex_screen", "-Per port stats table \n      ports | 0 | 1 \n")


def test_cut_trex_json_is_refused():
    text = text_of("trex/two-ports.txt")
    with pytest.raises(CaptureError, match="was it cut short"):
        load_text("trex", text[: len(text) // 2])


def test_testpmd_takes_the_last_statistics_of_a_port():
    capture = load("testpmd/two-ports.txt")
    rate = value(capture, "packet_rate", port="0", direction="received")
    assert rate == 1_400_000
    assert value(capture, "drops", port="0", direction="received") == 1_000_000
    assert value(capture, "errors", port="1", direction="sent") == 7


def test_the_screen_of_dpdks_pktgen_is_refused():
    text = "Pkts/s Max/Rx     :       0/0      0/0\n"
    assert LOADERS["testpmd"].sniff(RawFile.of(Path("x"), text.encode()))
    with pytest.raises(CaptureError, match="one moment of a run and is not read"):
        load_text("testpmd", text)


# Laws


@given(st.sampled_from(NAMES), st.integers(0, 1000), st.text(max_size=4))
def test_any_damaged_text_is_read_or_refused(name, place, damage):
    text = text_of(name)
    at = place * len(text) // 1000
    try:
        capture = load_text(
            name.partition("/")[0], text[:at] + damage + text[at + len(damage) :]
        )
    except CaptureError:
        return
    assert all(0 <= one.value < float("inf") for one in capture.measurements)


def test_ntttcp_for_linux_without_its_first_line_is_refused():
    with pytest.raises(CaptureError, match="version of NTTTCP is missing"):
        load_text("ntttcp_linux", text_of("ntttcp_linux/sender.txt")[1:])


# The corpus beside the checkout

KEYS = {
    "throughput_bits_per_second": ("throughput", 1),
    "sender_bits_per_second": ("send_rate", 1),
    "receiver_bits_per_second": ("throughput", 1),
    "retransmits": ("retransmits", 1),
    "retrans": ("retransmits", 1),
    "lost_percent": ("loss", 1e-2),
    "pps": ("packet_rate", 1),
    "rx_bps_total": ("throughput", 1),
    "tx_bps_total": ("send_rate", 1),
    "rx_pps_total": ("packet_rate", 1),
}


def rows(shared):
    with (shared / "corpus/net/MANIFEST.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            # uperf's manual sample counts the set-up time in; read off its one line
            # of the test alone it is 54.07 Mbit/s.
            if row["tool"] in TOOLS and "manual-default" not in row["path"]:
                path = shared / "corpus/net" / row["path"]
                yield row["tool"], path, json.loads(row["expected"])


def test_the_corpus_is_read_as_it_was_worked_out_by_hand(shared):
    seen = 0
    for tool, path, expected in rows(shared):
        raw = read(path)
        assert LOADERS[tool].sniff(raw), path.name
        capture = LOADERS[tool].load(raw)
        assert bool(capture.error) == ("error" in expected), path.name
        for key, (metric, factor) in KEYS.items():
            if key in expected:
                want = pytest.approx(expected[key] * factor, rel=1e-4, abs=1e-5)
                assert value(capture, metric) == want, (path.name, key)
                seen += 1
    assert seen > 30


# ---- nuttcp, captured runs over a loopback -------------------------------------------


def test_a_row_without_drops_or_retransmits_does_not_tell_its_protocol():
    row = "    1.1875 MB /   1.01 sec =    9.9004 Mbps 19 %TX 0 %RX"
    assert load_text("nuttcp", row + "\n").workload["protocol"] is None
    with_trip = load_text("nuttcp", row + " 0.10 msRTT\n")
    assert with_trip.workload["protocol"] == "TCP"


def test_retransmits_stand_before_the_window_in_8_2():
    text = (
        "nuttcp-t: v8.2.2: socket\n"
        "nuttcp-t: buflen=65536, nstream=1, port=5101 tcp -> 127.0.0.1\n"
        "nuttcp-t: 1.2500 MB in 1.05 real seconds = 1220.54 KB/sec = 9.9987 Mbps\n"
        "nuttcp-t: retrans = 7 cwnd = 543 KB\n"
        "nuttcp-r: 1.2500 MB in 1.05 real seconds = 1223.15 KB/sec = 10.0201 Mbps\n"
    )
    found = {one.metric: one.value for one in load_text("nuttcp", text).measurements}
    assert found["retransmits"] == 7
    assert found["throughput"] == pytest.approx(10.0201e6)
