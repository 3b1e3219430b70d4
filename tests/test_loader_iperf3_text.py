"""iperf3's text: units that change, whose line it is, and what is missing."""

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchstudy.errors import CaptureError
from patchstudy.loaders import iperf3_text, read
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "iperf3_text"
NAMES = sorted(path.name for path in FILES.glob("*.txt"))

HEAD = """\
Connecting to host 192.0.2.2, port 5201
[  5] local 192.0.2.1 port 38704 connected to 192.0.2.2 port 5201
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec  35.8 MBytes   300 Mbits/sec    0    167 KBytes
[  5]   1.00-2.00   sec   512 KBytes  4.20 Mbits/sec    0    235 KBytes
[  5]   2.00-3.00   sec  0.00 Bytes  0.00 bits/sec    0    235 KBytes
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
"""
END = """\
[  5]   0.00-3.00   sec  36.3 MBytes   102 Mbits/sec    7             sender
[  5]   0.00-3.57   sec  36.0 MBytes  84.6 Mbits/sec                  receiver

iperf Done.
"""
UDP = """\
Connecting to host 192.0.2.2, port 5201
[  5] local 192.0.2.1 port 38704 connected to 192.0.2.2 port 5201
[ ID] Interval           Transfer     Bitrate         Total Datagrams
[  5]   0.00-1.00   sec  2.39 MBytes  20.0 Mbits/sec  1787
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-1.00   sec  2.39 MBytes  20.0 Mbits/sec  0.000 ms  0/1787 (0%)  sender
"""


def load(name):
    return iperf3_text.load(read(FILES / name))


def load_text(text):
    return iperf3_text.load(RawFile.of(Path("run.txt"), text.encode()))


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


# What is read


def test_the_receivers_line_is_the_throughput_in_the_receivers_time():
    capture = load_text(HEAD + END)
    assert value(capture, "throughput") == pytest.approx(84.6e6)
    assert value(capture, "send_rate") == pytest.approx(102e6)
    assert value(capture, "retransmits") == 7
    assert capture.workload["duration_s"] == 3.0


def test_the_unit_stands_in_every_line():
    assert intervals(load_text(HEAD + END), "send_rate") == pytest.approx(
        [300e6, 4.2e6, 0.0]
    )


def test_kbytes_per_second_are_of_1024_byte():
    capture = load("v312-text-tcp-fK-bytes.txt")
    assert value(capture, "throughput") == 35030 * 1024 * 8


def test_the_sum_line_is_taken_and_the_streams_are_labelled():
    capture = load("v312-text-server-oneoff.txt")
    assert value(capture, "throughput") == pytest.approx(246e6)
    assert value(capture, "throughput", stream="2") == pytest.approx(121e6)
    assert intervals(capture, "throughput") == pytest.approx(
        [168e6, 287e6, 283e6, 232e6]
    )
    assert capture.workload["direction"] == "forward"


def test_both_directions_are_kept_apart():
    capture = load("v312-text-tcp-bidir-p2-fk.txt")
    assert value(capture, "throughput", direction="forward") == pytest.approx(282.19e6)
    assert value(capture, "throughput", direction="reverse") == pytest.approx(283.546e6)
    assert value(capture, "throughput") is None


def test_a_prefix_of_time_stamps_is_passed_over():
    text = "".join(
        f"Mon Nov 30 13:52:28 2026 {line}\n" for line in (HEAD + END).splitlines()
    )
    assert iperf3_text.sniff(RawFile.of(Path("run.txt"), text.encode()))
    assert value(load_text(text), "throughput") == pytest.approx(84.6e6)


def test_verbose_output_tells_start_version_and_protocol():
    verbose = (
        "iperf 3.7\nTime: Tue, 05 Nov 2019 08:55:56 UTC\n"
        + HEAD.replace(
            "[ ID] Interval",
            "Starting Test: protocol: TCP, 1 streams, 131072 byte blocks,"
            " omitting 2 seconds, 10 second test, tos 0\n[ ID] Interval",
            1,
        )
        + END
    )
    capture = load_text(verbose)
    assert capture.started_at == "2019-11-05T08:55:56Z"
    assert capture.tool_version == "3.7"
    assert capture.workload["duration_s"] == 10
    assert capture.workload["omit_s"] == 2


def test_omitted_intervals_are_in_no_value():
    text = HEAD.replace("170 KBytes", "").replace("167 KBytes", "167 KBytes  (omitted)")
    assert intervals(load_text(text + END), "send_rate") == pytest.approx([4.2e6, 0])


def test_columns_of_windows_have_no_retransmits():
    text = (HEAD + END).replace("    0    ", "").replace("    7   ", "")
    capture = load_text(text.replace("         Retr  Cwnd", ""))
    assert value(capture, "retransmits") is None
    assert "retransmits-absent" in codes(capture)


def test_in_reverse_mode_the_intervals_are_what_arrived():
    text = HEAD.replace(
        "[  5] local", "Reverse mode, remote host 192.0.2.2 is sending\n[  5] local"
    ).replace("         Retr  Cwnd", "")
    capture = load_text(text + END)
    assert capture.workload["direction"] == "reverse"
    assert intervals(capture, "send_rate") == []
    assert len(intervals(capture, "throughput")) == 3


# UDP


def test_udp_loss_is_the_receivers():
    capture = load("v321-text-udp.txt")
    assert value(capture, "loss") == 148 / 5358
    assert value(capture, "jitter") == pytest.approx(140e-6)
    assert value(capture, "throughput") == pytest.approx(19.3e6)


def test_the_one_line_of_old_versions_gives_an_estimate_and_says_so():
    capture = load("v3011-text-udp.txt")
    assert value(capture, "send_rate") == pytest.approx(19.4e6)
    assert value(capture, "throughput") == pytest.approx(19.4e6 * (1 - 1018 / 5191))
    assert "throughput-estimated" in codes(capture)


def test_the_one_line_of_old_versions_without_loss_and_jitter_tells_nothing():
    line = (
        "[  5]   0.00-1.00   sec  2.39 MBytes  20.0 Mbits/sec  0.000 ms  0/1787 (0%)\n"
    )
    capture = load_text(UDP.rpartition("[  5]")[0] + line)
    assert value(capture, "throughput") is None
    assert "receiver-unknown" in codes(capture)


def test_everything_lost_is_a_loss_of_one():
    line = "[  5]   0.00-1.00   sec  0.00 Bytes  0.00 bits/sec  0.000 ms  0/0 (-nan%)"
    capture = load_text(UDP + line + "  receiver\n")
    assert value(capture, "loss") == 1
    assert {"all-lost", "zero-throughput"} <= set(codes(capture))


@pytest.mark.parametrize("counts", ["-104080/81068 (-1.3e+02%)", "99/81 (1.2e+02%)"])
def test_an_impossible_loss_is_absent_and_says_why(counts):
    line = f"[  5]   0.00-1.00   sec  2.3 MBytes  19.0 Mbits/sec  0.153 ms  {counts}"
    capture = load_text(UDP + line + "  receiver\n")
    assert value(capture, "loss") is None
    assert "cannot be" in capture.caveats[-1].text


def test_losses_of_omitted_seconds_are_taken_out_by_the_bytes():
    omitted = "[  5]   0.00-1.00   sec  2.39 MBytes  20.0 Mbits/sec  1787  (omitted)\n"
    text = UDP.replace("[  5]   0.00", omitted + "[  5]   0.00", 1)
    line = (
        "[  5]   0.00-1.00   sec  2.27 MBytes  19.0 Mbits/sec  0.1 ms  300/1787 (17%)"
    )
    capture = load_text(text + line + "  receiver\n")
    assert value(capture, "loss") == pytest.approx(1 - 2.27 / 2.39)
    assert "loss-by-bytes" in codes(capture)


def test_without_intervals_the_rule_marks_the_summary():
    before, _, after = UDP.partition("[ ID] Interval           Transfer     Bitrate")
    rule = before + after[after.index("- - -") :].rpartition("[  5]")[0]
    line = "[  5]   0.00-1.00   sec  2.39 MBytes  20.0 Mbits/sec  0.009 ms  9/1787 (1%)"
    capture = load_text(f"{rule}{line}\n")
    assert intervals(capture, "send_rate") == []
    assert value(capture, "loss") == 9 / 1787


# What is missing, wrong or stands twice


def test_without_a_summary_there_are_intervals_only():
    capture = load("derived-text-no-summary.txt")
    assert len(intervals(capture, "send_rate")) == 3
    assert value(capture, "throughput") is None
    assert "cut-short" in codes(capture)
    assert capture.error is None


def test_an_error_is_a_failed_run_whose_last_interval_is_counted_once():
    capture = load("v312-err-port-closed-midway.txt")
    assert capture.error.text == "control socket has closed unexpectedly"
    assert len(intervals(capture, "send_rate")) == 3


def test_a_wrong_option_is_a_failed_run():
    assert "cannot be both reverse" in load("v312-err-options.json").error.text


def test_wrapped_retransmits_are_absent():
    capture = load_text(HEAD + END.replace("  7  ", "  4294967294  "))
    assert value(capture, "retransmits") is None
    assert "retransmits-wrapped" in codes(capture)


def test_streams_without_their_sum_are_added():
    rows = "".join(
        f"[{stream}] 5.00-6.00 sec 63.3 MBytes {rate} 0 0.00 Bytes\n"
        for stream, rate in ((2149, "531 Mbits/sec"), (2150, "2.42 Gbits/sec"))
    )
    capture = load_text(rows)
    assert intervals(capture, "send_rate") == pytest.approx([2.951e9])
    assert capture.workload["direction"] is None


def test_two_runs_in_one_file_are_two_documents():
    capture = load_text(HEAD + END + HEAD + END.replace("84.6", "91.0"))
    assert value(capture, "throughput", document="1") == pytest.approx(84.6e6)
    assert value(capture, "throughput", document="2") == pytest.approx(91.0e6)
    assert "several-documents" in codes(capture)


def test_the_same_run_twice_is_one_run():
    assert value(load_text(2 * (HEAD + END)), "throughput") == pytest.approx(84.6e6)


def test_a_second_run_cut_after_its_head_becomes_a_caveat():
    capture = load_text(HEAD + END + HEAD[: HEAD.index("[  5]   0.00")])
    assert value(capture, "throughput") == pytest.approx(84.6e6)
    assert "document-failed" in codes(capture)
    assert capture.error is None


@pytest.mark.parametrize(
    "text",
    [
        "Client connecting to 192.0.2.2, TCP port 5001\n",
        "[  3]  0.0- 1.0 sec  28.6 MBytes   240 Mbits/sec\n",
        '{"start": {"connected": []}}',
        "",
    ],
)
def test_other_files_are_not_taken_for_iperf3(text):
    assert not iperf3_text.sniff(RawFile.of(Path("x.txt"), text.encode()))


# Laws


@given(st.sampled_from(NAMES), st.integers(0, 1000), st.text(max_size=4))
def test_any_damaged_text_is_read_or_refused(name, place, damage):
    text = (FILES / name).read_text()
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
            if row["path"].startswith("iperf3/") and row["path"].endswith(".txt"):
                yield shared / "corpus/net" / row["path"], json.loads(row["expected"])


KEYS = {
    "throughput_bits_per_second": ("throughput", 1),
    "throughput_bits_per_second_estimate": ("throughput", 1),
    "sender_bits_per_second": ("send_rate", 1),
    "retransmits": ("retransmits", 1),
    "jitter_ms": ("jitter", 1e-3),
    "lost_percent": ("loss", 1e-2),
}


def test_the_corpus_is_read_as_it_was_worked_out_by_hand(shared):
    seen = 0
    for path, expected in rows(shared):
        capture = iperf3_text.load(read(path))
        assert bool(capture.error) == ("error" in expected), path.name
        for key, (metric, factor) in KEYS.items():
            if expected.get(key) is not None:
                want = pytest.approx(expected[key] * factor, rel=1e-4)
                assert value(capture, metric) == want, (path.name, key)
                seen += 1
        starts = {one.start_s for one in capture.measurements} - {None}
        assert len(starts) == expected.get("n_intervals", len(starts)), path.name
    assert seen > 40


def test_a_rate_printed_as_zero_in_a_large_unit_is_absent():
    text = (
        "[ ID] Interval           Transfer     Bitrate         Retr\n"
        "[  5]   0.00-2.00   sec  4.77 MBytes  0.00 Tbits/sec    0             sender\n"
        "[  5]  0.00-2.00  sec  4.77 MBytes  0.00 Tbits/sec                 receiver\n"
    )
    capture = load_text(text)
    assert "throughput" not in {one.metric for one in capture.measurements}
    assert "coarse-resolution" in {one.code for one in capture.caveats}


def test_what_debugging_prints_between_the_lines_is_passed_over():
    lines = (FILES / "v3011-text-udp.txt").read_text(encoding="utf-8").splitlines()
    told = 'send_parameters:\n{\n\t"udp":\ttrue\n}\nSNDBUF is 212992, expecting 0'
    row = "interval_len 1.000056 bytes_transferred 4000000\ninterval forces keep"
    noisy = [lines[0], told, *(f"{row}\n{line}" for line in lines[1:])]
    plain, found = load_text("\n".join(lines)), load_text("\n".join(noisy))
    assert iperf3_text.sniff(RawFile.of(Path("run.txt"), "\n".join(noisy).encode()))
    assert found.measurements == plain.measurements
    assert value(found, "loss") is not None


def test_losses_of_omitted_seconds_are_in_the_one_line_of_old_versions():
    text = (FILES / "v3011-text-udp.txt").read_text()
    first = next(line for line in text.splitlines() if "0.00-1.00 " in line)
    capture = load_text(text.replace(first, f"{first}  (omitted)\n{first}", 1))
    assert value(capture, "send_rate") is not None
    assert value(capture, "throughput") is None
    assert value(capture, "loss") is None
    assert "loss-absent" in codes(capture)


def test_a_rate_printed_as_zero_is_no_receiver_that_got_nothing():
    head = "[ ID] Interval  Transfer  Bitrate  Jitter  Lost/Total Datagrams\n"
    rows = (
        "[  5]   0.00-1.00   sec  1.19 MBytes  0.01 Gbits/sec  0.000 ms  0/850 (0%)"
        "  sender\n"
        "[  5]   0.00-1.00   sec   488 KBytes  0.00 Gbits/sec  0.009 ms  510/850 (60%)"
        "  receiver\n"
    )
    start = "Connecting to host 192.0.2.2, port 5201\n- - - - -\n"
    capture = load_text(start + head + rows)
    assert value(capture, "loss") == 0.6
    assert value(capture, "throughput") is None
    assert "all-lost" not in codes(capture)
