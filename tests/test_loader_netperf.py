"""netperf's classic text: receiver's rates with their units, sides and last digits."""

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchstudy.errors import CaptureError
from patchstudy.loaders import netperf, netperf_lines, read
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "netperf"
NAMES = sorted(path.name for path in FILES.glob("*.txt"))

HEAD = """\
MIGRATED TCP STREAM TEST from 0.0.0.0 () port 0 AF_INET to 192.0.2.1 () port 0 AF_INET
Recv   Send    Send
Socket Socket  Message  Elapsed
Size   Size    Size     Time     Throughput
bytes  bytes   bytes    secs.    10^6bits/sec

"""
ROW = "131072 2000000 2000000    0.39      409.76   \n"


def load(name):
    return netperf.load(read(FILES / name))


def load_text(text):
    return netperf.load(RawFile.of(Path("run.txt"), text.encode()))


def text_of(name):
    return (FILES / name).read_text()


def whole(capture, metric, **labels):
    """Return the one whole-run value with exactly these labels and the test's name."""
    if capture.workload["test"]:
        labels["test"] = capture.workload["test"]
    values = [
        one
        for one in capture.measurements
        if one.metric == metric and one.start_s is None and one.labels == labels
    ]
    assert len(values) <= 1
    return values[0] if values else None


def value(capture, metric, **labels):
    found = whole(capture, metric, **labels)
    return found and found.value


def codes(capture):
    return [one.code for one in capture.caveats]


# What is read


def test_a_stream_gives_its_throughput_with_the_last_digit():
    found = whole(load("v270-tcp_stream.txt"), "throughput")
    assert found.value == pytest.approx(400.39e6)
    assert found.resolution == pytest.approx(0.01e6)
    assert found.labels == {"test": "TCP_STREAM"}


def test_of_the_two_udp_lines_the_second_is_the_throughput():
    capture = load("v270-udp_stream.txt")
    assert value(capture, "throughput") == pytest.approx(365.01e6)
    assert value(capture, "send_rate") == pytest.approx(377.29e6)


def test_udp_loss_comes_from_the_messages():
    found = whole(load("v270-udp_stream.txt"), "loss")
    assert found.value == pytest.approx((101065 - 97777) / 101065)
    assert found.exposure == 101065


def test_one_open_transaction_gives_the_round_trip_time():
    capture = load("v270-tcp_rr-v2.txt")
    assert value(capture, "transaction_rate") == 35747.37
    found = whole(capture, "rtt_mean")
    assert found.value == pytest.approx(27.974e-6, rel=1e-4)
    assert found.resolution == pytest.approx(0.01 / 35747.37**2)


def test_a_burst_of_transactions_gives_no_round_trip_time():
    text = text_of("v270-tcp_rr-v2.txt").replace("first burst 0", "first burst 7")
    capture = load_text(text)
    assert value(capture, "rtt_mean") is None
    assert value(capture, "transaction_rate") == 35747.37
    assert "rtt-absent" in codes(capture)


def test_cpu_is_the_whole_machine_of_either_side():
    capture = load("lab-udp_stream-cpu.txt")
    assert value(capture, "cpu_busy", side="local") == 1
    assert value(capture, "cpu_busy", side="remote") == 1
    demand = value(capture, "cpu_per_byte", side="remote")
    assert demand == pytest.approx(76.818e-6 / 1024)


def test_cpu_that_was_not_measured_is_absent():
    capture = load("v270-tcp_stream-cpu-localonly.txt")
    assert value(capture, "cpu_busy", side="local") == 1
    assert value(capture, "cpu_busy", side="remote") is None
    assert value(capture, "cpu_per_byte", side="remote") is None
    assert "cpu-absent" in codes(capture)


def test_the_service_demand_of_transactions_is_a_fact():
    capture = load("lab-tcp_rr-cpu.txt")
    assert capture.facts["local_us_per_transaction"] == 226.927
    assert value(capture, "cpu_per_byte", side="local") is None


def test_maerts_is_the_reverse_direction():
    capture = load("v270-tcp_maerts-cpu.txt")
    assert capture.workload["direction"] == "reverse"
    assert value(capture, "throughput") == pytest.approx(400.41e6)


def test_interim_results_are_intervals_of_what_the_local_side_sent():
    capture = load("v270-tcp_stream-D-many-interim.txt")
    interims = [one for one in capture.measurements if one.start_s is not None]
    assert len(interims) == 8
    assert {one.metric for one in interims} == {"send_rate"}
    assert interims[0].value == pytest.approx(447.13e6)
    assert interims[0].end_s == pytest.approx(0.526, abs=1e-3)
    assert capture.started_at == "2026-11-30T14:24:47Z"


def test_columns_that_touch_are_told_apart():
    capture = load_text(HEAD + ROW)
    assert value(capture, "throughput") == pytest.approx(409.76e6)
    assert capture.workload["send_size"] == 2_000_000
    assert capture.workload["duration_s"] == 0.39


@pytest.mark.parametrize(
    ("unit", "bits"),
    [
        pytest.param("10^3bits/sec", 409.76e3, id="-f k"),
        pytest.param("10^9bits/sec", 409.76e9, id="-f g"),
        pytest.param("KBytes/sec  ", 409.76 * 1024 * 8, id="-f K is 2^10"),
        pytest.param("MBytes/sec  ", 409.76 * 2**20 * 8, id="-f M is 2^20"),
    ],
)
def test_the_unit_stands_in_the_head(unit, bits):
    capture = load_text(HEAD.replace("10^6bits/sec", unit) + ROW)
    assert value(capture, "throughput") == pytest.approx(bits)


def test_a_quoted_mail_is_read():
    quoted = "".join(f">> {line}\n" for line in (HEAD + ROW).splitlines())
    assert value(load_text(quoted), "throughput") == pytest.approx(409.76e6)


BANNER, BELOW = HEAD.split("\n", 1)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        pytest.param(
            (HEAD + ROW).replace(" AF_INET to ", " AF_INET to\n"),
            "TCP_STREAM",
            id="wrap",
        ),
        pytest.param(
            "".join(f"    {line}\n" for line in (HEAD + ROW).split("\n")),
            "TCP_STREAM",
            id="indented",
        ),
        pytest.param(
            "  " + BANNER + "\n" + BELOW.replace("\nbytes", "\n   bytes") + "   " + ROW,
            "TCP_STREAM",
            id="unevenly",
        ),
        pytest.param(
            (HEAD + ROW).replace("AF_INET", "AF\\_INET"), "TCP_STREAM", id="markdown"
        ),
        pytest.param(
            "TCP STREAM TEST to host : histogram\n" + BELOW + ROW,
            "TCP_STREAM",
            id="2.3",
        ),
        pytest.param(
            (HEAD + ROW).replace("MIGRATED TCP", "SCTP 1-TO-1"),
            "SCTP_STREAM",
            id="SCTP",
        ),
    ],
)
def test_a_paste_is_read_as_it_was_printed(text, name):
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert netperf.sniff(raw)
    capture = netperf.load(raw)
    assert capture.workload["test"] == name
    assert value(capture, "throughput") == pytest.approx(409.76e6)


def test_the_segment_size_of_verbose_output_is_read():
    assert load("v270-tcp_stream-v2.txt").workload["mss"] == 65483


def test_transactions_in_bits_are_divided_by_both_message_sizes():
    capture = load("v270-tcp_rr-burst-bps.txt")
    rate = 740.03e6 / (8 * (1024 + 1024))
    assert value(capture, "transaction_rate") == pytest.approx(rate)
    assert value(capture, "throughput") is None
    assert "rate-from-bits" in codes(capture)


# Omni output and -P 0


def test_omni_csv_is_read_by_the_names_of_its_columns():
    capture = load("v270-omni-csv-o.csv")
    assert value(capture, "throughput") == pytest.approx(400.59e6)
    assert value(capture, "cpu_busy", side="local") is None
    assert capture.workload["direction"] == "forward"
    assert capture.command.startswith("/usr/bin/netperf -H")


def test_omni_columns_are_read_block_by_block():
    capture = load("v270-omni-human-O.txt")
    assert value(capture, "throughput") == pytest.approx(397.94e6)
    assert value(capture, "cpu_busy", side="remote") == 1.0
    assert capture.workload["direction"] == "reverse"


def test_omni_keys_of_udp_tell_the_loss_in_messages():
    found = whole(load("v270-udp_stream-loss-keyval.txt"), "loss")
    assert found.value == 1313 / 26138
    assert found.exposure == 26138


def test_omni_latencies_of_a_request_response_test_are_round_trips():
    capture = load("v270-tcp_rr-csv-o-latency.csv")
    assert value(capture, "rtt_mean") == pytest.approx(25.48e-6)
    assert value(capture, "rtt_p99") == pytest.approx(99e-6)
    assert value(capture, "transaction_rate") == pytest.approx(39129.16)


def test_sentinels_of_omni_are_absent():
    text = (
        HEAD.splitlines()[0] + "\nTHROUGHPUT=0.00\nTHROUGHPUT_UNITS=10^6bits/s\n"
        "LOCAL_CPU_UTIL=-1.00\nTHROUGHPUT_CONFID=-nan\nLOCAL_SD=-1.000\n"
    )
    capture = load_text(text)
    assert [one.metric for one in capture.measurements] == ["throughput"]
    assert "zero-throughput" in codes(capture)


def test_more_values_than_names_leave_only_the_first_pair():
    text = HEAD.splitlines()[0] + (
        "\nThroughput,Throughput Units,99th Percentile Latency Microseconds\n"
        "1102.42,10^6bits/s,11,46\n"
    )
    capture = load_text(text)
    assert value(capture, "throughput") == pytest.approx(1102.42e6)
    assert "columns-differ" in codes(capture)


def test_interims_without_a_banner_are_read_with_their_unit():
    capture = load("v270-tcp_stream-D-interim-P0-v2-flentlike.txt")
    values = [one for one in capture.measurements if one.start_s is not None]
    assert len(values) == 15
    assert values[0].value == pytest.approx(513.42e6)
    assert "direction-unknown" in codes(capture)


def test_a_row_without_a_head_takes_the_default_unit_and_doubts_it():
    capture = load_text(ROW)
    assert value(capture, "throughput") == pytest.approx(409.76e6)
    assert "unit-assumed" in codes(capture)


def test_a_label_behind_the_row_is_a_fact():
    capture = load_text(ROW.rstrip() + "   run=7,kernel=patched\n")
    assert value(capture, "throughput") == pytest.approx(409.76e6)
    assert capture.facts["label"] == "run=7,kernel=patched"


@pytest.mark.parametrize("text", [HEAD + ROW + ROW, 2 * (HEAD + ROW), 2 * ROW])
def test_several_results_are_never_added_up(text):
    capture = load_text(text)
    documents = [one.labels["document"] for one in capture.measurements]
    assert documents == ["1", "2"]
    assert "several-documents" in codes(capture)


# What is doubted


def test_a_printed_zero_is_doubted():
    capture = load("v270-tcp_stream-starved-0.00.txt")
    assert value(capture, "throughput") == 0
    assert "zero-throughput" in codes(capture)


def test_two_digits_are_too_few_and_say_so():
    capture = load_text(HEAD + " 87380 327680 327680    341.79      0.05\n")
    assert value(capture, "throughput") == pytest.approx(50e3)
    assert "coarse-resolution" in codes(capture)


def test_netperfs_warning_about_its_confidence_is_passed_on():
    warning = (
        "!!! WARNING\n"
        "!!! Desired confidence was not achieved within the specified iterations.\n"
        "!!! Confidence intervals: Throughput      : 10.100%\n"
        "!!!                       Local CPU util  : 0.000%\n\n"
    )
    banner, _, rest = (HEAD + ROW).partition("\n")
    capture = load_text(f"{banner} : +/-2.500% @ 99% conf.\n{warning}{rest}")
    assert value(capture, "throughput") == pytest.approx(409.76e6)
    assert "confidence-not-achieved" in codes(capture)
    assert "10.100%" in capture.caveats[0].text
    assert capture.facts["confidence"] == "+/-2.500% @ 99% conf."


def test_more_received_than_sent_is_no_loss_at_all():
    capture = load_text(text_of("v270-udp_stream.txt").replace("97777", "107777"))
    assert value(capture, "loss") is None
    assert "loss-absent" in codes(capture)


def test_udp_rr_may_have_stopped_and_says_so():
    capture = load_text(text_of("v270-tcp_rr-v2.txt").replace("TCP REQ", "UDP REQ"))
    assert "udp-rr-may-stop" in codes(capture)


# What failed and what is refused


def test_a_dead_server_is_a_failed_run_with_its_intervals():
    capture = load("v270-err-server-killed.txt")
    assert capture.error.text.startswith("recv_response: partial response")
    assert capture.error.where == "6"
    assert len(capture.measurements) == 4


def test_a_missing_server_is_a_failed_run():
    text = "establish control: are you sure there is a netserver listening on h?\n"
    assert netperf.sniff(RawFile.of(Path("run.txt"), text.encode()))
    assert "are you sure" in load_text(text).error.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(" 394.12 \n", r"run.txt:1: a bare number \(394.12\)", id="-v 0"),
        pytest.param(
            BANNER + "\n 394.12\n", r"run.txt:2: a bare number \(394.12\)", id="banner"
        ),
        pytest.param(
            HEAD.replace("MIGRATED TCP STREAM", "OMNI Send"),
            "omni result is missing; was it cut short",
            id="omni",
        ),
        pytest.param(HEAD, "prints 1 rows, here are 0; was it cut short", id="head"),
        pytest.param(HEAD[:200], "result is missing; was it cut short", id="cut head"),
        pytest.param(HEAD + ROW[:36], r"run.txt:7: not the columns", id="cut row"),
        pytest.param(
            HEAD.replace("10^6bits/sec", "furlong") + ROW,
            "no known unit of throughput",
            id="unit",
        ),
    ],
)
def test_what_cannot_be_read_safely_is_refused_with_what_to_do(text, message):
    with pytest.raises(CaptureError, match=message):
        load_text(text)


def test_udp_without_the_receivers_line_is_refused():
    text = text_of("v270-udp_stream.txt").rstrip("\n").rpartition("\n")[0]
    with pytest.raises(CaptureError, match="prints 2 rows, here are 1"):
        load_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "Connecting to host 192.0.2.2, port 5201\n",
        "1 2 3 4\n",
        '{"start": {"connected": []}}',
        "00000000 00000000 00000000\n",
        "",
    ],
)
def test_other_files_are_not_taken_for_netperf(text):
    assert not netperf.sniff(RawFile.of(Path("x.txt"), text.encode()))


# Laws


@given(st.sampled_from(NAMES), st.integers(0, 1000), st.text(max_size=4))
def test_any_damaged_text_is_read_or_refused(name, place, damage):
    text = text_of(name)
    at = place * len(text) // 1000
    try:
        capture = load_text(text[:at] + damage + text[at + len(damage) :])
    except CaptureError:
        return
    assert all(0 <= one.value < float("inf") for one in capture.measurements)


@given(st.sampled_from(NAMES), st.integers(0, 999))
def test_a_cut_text_gives_no_other_value(name, place):
    text = text_of(name)
    try:
        part = load_text(text[: place * len(text) // 1000])
    except CaptureError:
        return
    if "loss-by-bytes" in codes(part):
        return  # the counts of messages were cut off; the bytes differ in a digit
    values = {one.value for one in load(name).measurements}
    assert {one.value for one in part.measurements} <= values


# The corpus beside the checkout


def rows(shared):
    with (shared / "corpus/net/MANIFEST.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["tool"] == "netperf":
                yield shared / "corpus/net" / row["path"], json.loads(row["expected"])


NAMES_OF = {
    "throughput_bits_per_second": ("throughput", {}, 1),
    "sender_bits_per_second": ("send_rate", {}, 1),
    "transactions_per_second": ("transaction_rate", {}, 1),
    "lost_percent": ("loss", {}, 1e-2),
    "cpu_local": ("cpu_busy", {"side": "local"}, 1e-2),
    "cpu_remote": ("cpu_busy", {"side": "remote"}, 1e-2),
}


def test_the_corpus_is_read_as_it_was_worked_out_by_hand_or_refused(shared):
    read_well = 0
    for path, expected in rows(shared):
        raw = read(path)
        try:
            capture = netperf.load(raw) if netperf.sniff(raw) else None
        except CaptureError:
            continue
        if capture is None or capture.error:
            continue
        read_well += 1
        if "results" in expected or path.name == "v270-tcp_rr-burst-bps.txt":
            continue  # tested below, and above
        if "duration_s" in expected:
            assert capture.workload["duration_s"] == expected["duration_s"]
        for key, (metric, labels, factor) in NAMES_OF.items():
            if key not in expected:
                continue
            want = expected[key]
            want = want if want is None else pytest.approx(want * factor, rel=2e-4)
            assert value(capture, metric, **labels) == want, (path.name, metric)
    assert read_well == 48


def test_omni_csv_of_the_corpus_gives_the_figure_of_its_row(shared):
    for path, expected in rows(shared):
        if "csv" in expected:
            capture = netperf.load(read(path))
            rate = value(capture, "transaction_rate")
            found = rate or value(capture, "throughput") / 1e6
            assert found == pytest.approx(float(expected["csv"]["Throughput"])), path


def test_several_results_of_the_corpus_are_kept_apart(shared):
    several = [(path, one["results"]) for path, one in rows(shared) if "results" in one]
    assert several
    for path, results in several:
        capture = netperf.load(read(path))
        for number, expected in enumerate(results, start=1):
            found = value(capture, "throughput", document=str(number))
            assert found == pytest.approx(expected["throughput_bits_per_second"])


def test_failed_runs_of_the_corpus_give_an_error_with_the_same_words(shared):
    for path, expected in rows(shared):
        if "error" not in expected:
            continue
        capture = netperf.load(read(path))
        assert expected["error"] in path.read_text()
        assert capture.error is not None
        intervals = [one for one in capture.measurements if one.start_s is not None]
        assert len(intervals) == expected.get("n_interim", 0)
        assert len(intervals) == len(capture.measurements)


def test_no_other_file_of_the_corpus_is_taken_for_netperf(shared):
    for path in sorted((shared / "corpus/net").glob("*/*")):
        if path.parent.name == "netperf" or "truncated" in path.name:
            continue
        assert not netperf.sniff(read(path)), path.name


def test_every_run_of_the_lab_is_read_without_a_doubt(shared):
    paths = sorted((shared / "lab").rglob("netperf.netperf.*.txt"))
    assert paths
    for path in paths:
        capture = netperf.load(read(path))
        assert path.suffixes[-2] == "." + capture.workload["test"]
        assert capture.error is None
        assert capture.caveats == ()


# ---- output of netperf 2.7.0 over a loopback, captured for these tests ---------------

BANNER = (
    "MIGRATED {} TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 127.0.0.1 () port 0"
    " AF_INET : demo{}\n"
)
COLUMNS = """\
Local       Remote      Local  Elapsed Throughput Throughput  
Send Socket Recv Socket Send   Time               Units       
Size        Size        Size   (sec)                          
Final       Final                                             
4194304     1026899     16384  1.02    1792.67    10^6bits/s  
"""  # noqa: W291 - as netperf prints them


def test_columns_below_a_classic_banner_are_omni_output():
    capture = load_text(BANNER.format("TCP STREAM", "") + COLUMNS)
    assert value(capture, "throughput") == pytest.approx(1792.67e6)
    assert capture.workload["duration_s"] == 1.02
    assert capture.workload["send_size"] == 16384


def test_interims_of_csv_output_are_intervals():
    text = BANNER.format("TCP STREAM", "") + (
        "2632.19,10^6bits/s,2.007,1796094427.062\n"
        "Local Send Socket Size Final,Remote Recv Socket Size Final,Local Send Size,"
        "Elapsed Time (sec),Throughput,Throughput Units\n"
        "4194304,1026899,16384,2.01,2626.11,10^6bits/s\n"
    )
    capture = load_text(text)
    assert value(capture, "throughput") == pytest.approx(2626.11e6)
    (interim,) = [one for one in capture.measurements if one.start_s is not None]
    assert (interim.metric, interim.value) == ("send_rate", pytest.approx(2632.19e6))
    assert interim.end_s == pytest.approx(2.007)
    assert capture.started_at == "2026-12-01T03:07:05Z"


def test_interims_tell_the_unit_where_there_is_no_head():
    text = (
        "Interim result: 334.28 MBytes/s over 2.000 seconds ending at 1796094411.466\n"
        "131072  16384  16384    2.01     332.80   \n"
    )
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert netperf.sniff(raw)
    capture = netperf.load(raw)
    assert value(capture, "throughput") == pytest.approx(332.80 * 2**20 * 8)
    assert {"test-unknown", "interim-unread"} <= set(codes(capture))
    assert "unit-assumed" not in codes(capture)


@pytest.mark.parametrize(
    ("line", "metric", "wanted"),
    [
        ("4194304,1229941,16384,1.04,2498.81,10^6bits/s", "throughput", 2498.81e6),
        ("1,2,3,4,1,1,1.00,17862.30,Trans/s", "transaction_rate", 17862.30),
    ],
)
def test_csv_without_names_is_read_in_its_own_order(line, metric, wanted):
    raw = RawFile.of(Path("run.txt"), (line + "\n").encode())
    assert netperf.sniff(raw)
    capture = netperf.load(raw)
    (one,) = capture.measurements
    assert (one.metric, one.value) == (metric, pytest.approx(wanted))
    assert "test-unknown" in codes(capture)


def test_csv_without_names_in_another_order_is_not_netperfs():
    raw = RawFile.of(Path("run.txt"), b"10^6bits/s,2498.81,1.04\n")
    assert not netperf.sniff(raw)


def test_the_latency_of_a_transaction_with_its_connection_is_no_round_trip():
    banner = BANNER.format("TCP Connect/Request/Response", "")
    keys = "THROUGHPUT=2867.82\nTHROUGHPUT_UNITS=Trans/s\nMEAN_LATENCY=348.49\n"
    capture = load_text(banner + keys)
    assert value(capture, "transaction_rate") == 2867.82
    assert value(capture, "rtt_mean") is None
    assert "rtt-absent" in codes(capture)


def test_a_name_that_cannot_be_resolved_is_netperfs_error():
    text = (
        "resolve_host: could not resolve host '127.0.0.1' port '12865' af AF_INET\n"
        "\tgetaddrinfo returned -2 Name or service not known\n"
        "establish_control could not establish the control connection from 0.0.0.0\n"
    )
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert netperf.sniff(raw)
    assert "could not resolve host" in netperf.load(raw).error.text


def test_debug_output_says_how_to_run_it():
    text = "resolve_host called with host '127.0.0.1' port '(null)' family AF_UNSPEC\n"
    with pytest.raises(CaptureError, match=r"run\.txt:1: .*\(-d\) is not read"):
        load_text(text + BANNER.format("TCP STREAM", "") + ROW)


class Counted:
    """A pattern that counts how many letters it was given."""

    def __init__(self, pattern):
        self.pattern, self.letters = pattern, 0

    def match(self, text):
        self.letters += len(text)
        return self.pattern.match(text)


def test_a_line_of_many_banners_is_looked_at_once(monkeypatch):
    wrapped = Counted(netperf_lines._WRAPPED)
    monkeypatch.setattr(netperf_lines, "_WRAPPED", wrapped)
    text = "TCP STREAM TEST from " * 10_000 + "to\n0.0.0.0 (x) port 0\n" + "a to\n" * 9
    lines = list(netperf_lines.numbered(text))
    assert lines[0][1].endswith("TEST from to 0.0.0.0 (x) port 0")
    assert wrapped.letters == len("0.0.0.0 (x) port 0")


def test_a_broken_banner_does_not_move_the_numbers_of_the_lines():
    text = "A TEST from 0.0.0.0 () port 0 AF_INET to\n> 192.0.2.1 () port 0\n> row\n"
    numbers = [number for number, _line in netperf_lines.numbered(text)]
    assert numbers == [2, 3]
