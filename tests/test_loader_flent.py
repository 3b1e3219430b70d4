"""flent: the tools' final figures, not the means of its points."""

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchstudy.errors import CaptureError
from patchstudy.loaders import flent, read
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "flent"
NAMES = sorted(path.name for path in FILES.glob("*.gz"))


def load(name):
    return flent.load(read(FILES / name))


def document(name):
    """Return a data file as Python objects, to be changed by hand."""
    return json.loads(read(FILES / name).data)


def load_object(content):
    return flent.load(RawFile.of(Path("run.flent"), json.dumps(content).encode()))


def ping_file(n):
    """Return a ping test with so many round trips: 1 ms, 2 ms and so on."""
    content = document("v4-cap-ping.flent.gz")
    start = content["raw_values"]["Ping (ms) ICMP"][0]["t"]
    content["raw_values"]["Ping (ms) ICMP"] = [
        {"seq": one, "t": start + 0.2 * one, "val": one + 1.0} for one in range(n)
    ]
    return content


def value(capture, metric, **labels):
    """Return the one whole-run value with exactly these labels, or None."""
    values = [
        one.value
        for one in capture.measurements
        if one.metric == metric and one.start_s is None and one.labels == labels
    ]
    assert len(values) <= 1
    return values[0] if values else None


def intervals(capture, metric):
    return [
        one
        for one in capture.measurements
        if one.metric == metric and one.start_s is not None
    ]


def codes(capture):
    return [one.code for one in capture.caveats]


# What is read


def test_throughput_is_the_sum_of_netperfs_results_and_not_the_mean_of_points():
    capture = load("v4-cap-tcp_nup-3-sockstats.flent.gz")
    assert value(capture, "throughput", direction="upload") == pytest.approx(102.44e6)
    first = value(capture, "throughput", direction="upload", stream="1")
    assert first == pytest.approx(38.58e6)


def test_derived_series_and_socket_statistics_are_no_streams():
    capture = load("v4-cap-tcp_nup-3-sockstats.flent.gz")
    assert capture.workload["streams"] == 3
    streams = {one.labels.get("stream") for one in capture.measurements}
    assert streams == {None, "1", "2", "3"}


def test_fairness_is_that_of_the_final_figures():
    capture = load("v4-cap-tcp_nup-3-sockstats.flent.gz")
    jain = value(capture, "fairness", direction="upload")
    assert jain == pytest.approx(0.98526033)


def test_one_stream_has_no_fairness_and_no_stream_label():
    capture = load("lab-tcp_nup.flent.gz")
    assert capture.workload["streams"] == 1
    assert value(capture, "fairness", direction="upload") is None
    assert not [one for one in capture.measurements if "stream" in one.labels]


def test_retransmits_are_the_senders_with_the_number_of_segments():
    capture = load("v4-cap-tcp_nup-3-sockstats.flent.gz")
    (found,) = [one for one in capture.measurements if one.metric == "retransmits"]
    assert found.value == 2
    assert found.exposure > (33144832 + 28688384) / 65483


def test_both_directions_of_rrul_are_kept_apart():
    capture = load("v4-cap-rrul-extmeta.flent.gz")
    assert capture.workload["direction"] == "bidir"
    assert value(capture, "throughput", direction="upload") == pytest.approx(45.58e6)
    assert value(capture, "throughput", direction="download") == pytest.approx(69.74e6)
    best = value(capture, "throughput", direction="download", stream="BE")
    assert best == pytest.approx(50.9e6)


def test_points_of_an_upload_are_what_was_sent_and_of_a_download_what_came():
    capture = load("v4-cap-rrul-extmeta.flent.gz")
    sent, received = intervals(capture, "send_rate"), intervals(capture, "throughput")
    assert {one.labels["direction"] for one in sent} == {"upload"}
    assert {one.labels["direction"] for one in received} == {"download"}
    assert min(one.start_s for one in received) > 4.5


def test_the_udp_upload_is_the_senders_rate():
    capture = load("v4-cap-udp_flood.flent.gz")
    assert value(capture, "send_rate", direction="upload") == pytest.approx(70477986)
    assert value(capture, "throughput", direction="upload") is None
    assert "throughput-absent" in codes(capture)


def test_the_round_trip_time_is_the_mean_of_the_ping_tool():
    capture = load("v4-cap-ping.flent.gz")
    assert value(capture, "rtt_mean", test="ICMP") == pytest.approx(0.045e-3)
    assert value(capture, "rtt_mean", test="UDP") == pytest.approx(0.384732e-3)
    assert len(intervals(capture, "rtt_mean")) == 40


@pytest.mark.parametrize(
    ("pings", "median", "high"),
    [
        pytest.param(19, None, None, id="too few"),
        pytest.param(99, 0.050, None, id="enough for the median"),
        pytest.param(1000, 0.5005, 0.990, id="enough for 99 %"),
    ],
)
def test_quantiles_need_enough_pings(pings, median, high):
    capture = load_object(ping_file(pings))
    assert value(capture, "rtt_p50", test="ICMP") == (
        median if median is None else pytest.approx(median)
    )
    assert value(capture, "rtt_p99", test="ICMP") == (
        high if high is None else pytest.approx(high)
    )


def test_averages_over_several_round_trips_give_no_quantiles():
    content = ping_file(1000)
    content["metadata"]["SERIES_META"]["Ping (ms) ICMP"]["RUNNER"] = "NetperfDemoRunner"
    assert value(load_object(content), "rtt_p99", test="ICMP") is None


def netperf_ping_file(form, points):
    """Return a ping test whose ICMP series is a UDP_RR of netperf, as v3 had it."""
    content = document("v4-cap-ping.flent.gz")
    start = content["raw_values"]["Ping (ms) ICMP"][0]["t"]
    content["version"] = form
    content["raw_values"]["Ping (ms) UDP"] = [
        {"dur": 0.25, "t": start + 0.25 * (one + 1), "val": 40.0}
        for one in range(points)
    ]
    return content


@pytest.mark.parametrize(
    ("form", "seconds"),
    [
        pytest.param(2, 0.025, id="40 transactions per second"),
        pytest.param(3, 0.025, id="the same"),
        pytest.param(4, 0.040, id="40 ms"),
    ],
)
def test_pings_of_netperf_are_rates_before_format_4(form, seconds):
    capture = load_object(netperf_ping_file(form, 16))
    found = [
        one for one in intervals(capture, "rtt_mean") if one.labels["test"] == "UDP"
    ]
    assert [one.value for one in found] == pytest.approx([seconds] * 16)
    assert {round(one.end_s - one.start_s, 6) for one in found} == {0.25}
    assert value(capture, "rtt_p50", test="UDP") is None
    assert "ping-stopped" not in codes(capture)


def test_a_ping_of_netperf_that_a_lost_datagram_ended_is_doubted():
    assert "ping-stopped" in codes(load_object(netperf_ping_file(3, 8)))


def test_points_may_stand_with_the_series_metadata():
    content = document("v4-cap-ping.flent.gz")
    meta = content["metadata"]["SERIES_META"]["Ping (ms) ICMP"]
    meta["RAW_VALUES"] = content["raw_values"].pop("Ping (ms) ICMP")
    assert len(intervals(load_object(content), "rtt_mean")) == 40


def test_start_version_and_workload_are_read():
    capture = load("v4-cap-tcp_nup-3-sockstats.flent.gz")
    assert capture.started_at == "2026-11-30T14:27:00Z"
    assert capture.tool_version == "2.3.0"
    assert capture.workload["test"] == "tcp_nup"
    assert capture.workload["duration_s"] == 6
    assert capture.facts["title"] == "v2 patched"


def test_format_1_has_no_zone_and_so_no_start_and_no_points():
    capture = load("v1-cap-tcp_upload-extmeta.json.gz")
    assert capture.started_at is None
    assert value(capture, "throughput", direction="upload") == pytest.approx(100.31e6)
    assert intervals(capture, "send_rate") == []


# What is doubted


def test_a_failed_netperf_leaves_throughput_absent():
    capture = load("v4-cap-tcp_download-noserver.flent.gz")
    assert value(capture, "throughput", direction="download") is None
    assert {"throughput-absent", "failed-runners", "series-empty"} <= set(
        codes(capture)
    )


def test_one_failed_stream_of_several_leaves_their_sum_absent():
    content = document("v4-cap-tcp_nup-3-sockstats.flent.gz")
    del content["metadata"]["SERIES_META"]["TCP upload::2"]["MEAN_VALUE"]
    capture = load_object(content)
    assert value(capture, "throughput", direction="upload") is None
    assert "TCP upload::2" in capture.caveats[0].text


def test_pings_before_and_after_the_load_are_named():
    capture = load("v4-cap-rrul-extmeta.flent.gz")
    (found,) = [one for one in capture.caveats if one.code == "idle-pings"]
    assert "10 s without load" in found.text


def test_a_count_that_netperf_was_not_asked_for_is_absent():
    content = document("v4-cap-rrul-extmeta.flent.gz")
    for name, meta in content["metadata"]["SERIES_META"].items():
        if name.startswith("TCP download") and "COMMAND" in meta:
            meta["COMMAND"] = meta["COMMAND"].replace("REMOTE_TRANSPORT_RETRANS", "")
    capture = load_object(content)
    assert value(capture, "retransmits", direction="download") is None
    assert value(capture, "retransmits", direction="upload") == 1


def test_another_unit_is_not_taken_for_megabits():
    content = document("lab-tcp_nup.flent.gz")
    content["metadata"]["SERIES_META"]["TCP upload::1"]["UNITS"] = "MBytes/s"
    assert value(load_object(content), "throughput", direction="upload") is None


def test_unknown_series_are_named():
    content = document("v4-cap-ping.flent.gz")
    content["results"]["cpu_stats_host::load"] = [0.1]
    content["results"]["cpu_stats_host::cpu0"] = [0.1]
    texts = [one.text for one in load_object(content).caveats]
    assert "not read: cpu_stats_host (load, cpu0)" in texts


# What is refused


def test_a_cut_file_says_in_which_line():
    data = read(FILES / "v4-cap-ping.flent.gz").data
    with pytest.raises(CaptureError, match=r"flent:\d+: not JSON .*was it cut short"):
        flent.load(RawFile.of(Path("run.flent"), data[: len(data) * 2 // 3]))


@pytest.mark.parametrize("version", [5, 0, "new", None])
def test_an_unknown_format_is_refused(version):
    content = document("v4-cap-ping.flent.gz") | {"version": version}
    with pytest.raises(CaptureError, match="is not known; formats 1 to 4 are read"):
        load_object(content)


def test_a_file_without_results_is_refused():
    content = document("v4-cap-ping.flent.gz")
    del content["results"]
    with pytest.raises(CaptureError, match="not a flent data file"):
        load_object(content)


@pytest.mark.parametrize(
    "text",
    [
        '{"start": {"connected": [], "version": "iperf 3.12"}}',
        '{"sysstat": {"hosts": []}}',
        '{"metadata": {"author": "me"}, "cells": []}',
        "THROUGHPUT=1.00\n",
        "",
    ],
)
def test_other_files_are_not_taken_for_flent(text):
    assert not flent.sniff(RawFile.of(Path("x.json"), text.encode()))


# Laws

JSON = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
JSON |= st.lists(JSON, max_size=2) | st.dictionaries(st.text(max_size=3), JSON)


@given(st.sampled_from(NAMES), st.data())
def test_any_changed_value_gives_finite_numbers_or_a_capture_error(name, data):
    content = document(name)
    place = content
    while isinstance(place, dict | list) and place:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or data.draw(st.booleans()):
            place[key] = data.draw(JSON)
            break
        place = place[key]
    try:
        capture = load_object(content)
    except CaptureError:
        return
    assert all(abs(one.value) < float("inf") for one in capture.measurements)


# The corpus beside the checkout


def rows(shared):
    with (shared / "corpus/net/MANIFEST.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["tool"] == "flent":
                yield shared / "corpus/net" / row["path"], json.loads(row["expected"])


def expected_value(name):
    """Return metric, labels and factor for a final figure; None for derived ones."""
    kind, _, rest = name.partition(" ")
    if kind == "Ping":
        test = rest.removeprefix("(ms) ")
        return None if test == "avg" else ("rtt_mean", {"test": test}, 1e-3)
    direction, _, stream = rest.replace("::", " ").partition(" ")
    labels = {"direction": direction}
    if direction == "totals" or stream == "avg":
        return None
    if stream == "fairness":
        return "fairness", labels, 1
    if stream not in {"", "sum"}:
        labels["stream"] = stream
    return "throughput" if kind == "TCP" else "send_rate", labels, 1e6


def test_the_corpus_gives_netperfs_final_figures(shared):
    seen = 0
    for path, expected in rows(shared):
        if "error" in expected:
            continue
        capture = flent.load(read(path))
        assert capture.facts["format"] == expected["format_version"]
        for name, figure in expected["netperf_final_mean_value"].items():
            wanted = expected_value(name)
            if wanted:
                metric, labels, factor = wanted
                found = value(capture, metric, **labels)
                assert found == pytest.approx(figure * factor, rel=1e-3), name
                seen += 1
    assert seen > 40


def test_a_cut_gzip_of_the_corpus_is_refused(shared):
    path = shared / "corpus/net/flent/v4-cap-tcp_download-truncated.flent.gz"
    with pytest.raises(CaptureError, match=r"broken gzip .* was it cut short"):
        read(path)


def test_no_other_file_of_the_corpus_is_taken_for_flent(shared):
    for path in sorted((shared / "corpus/net").glob("*/*")):
        if path.parent.name != "flent":
            assert not flent.sniff(read(path)), path.name


def test_every_run_of_the_lab_is_read(shared):
    paths = sorted((shared / "lab").rglob("*.flent.gz"))
    assert paths
    for path in paths:
        capture = flent.load(read(path))
        assert value(capture, "throughput", direction="upload") > 0
        assert value(capture, "rtt_mean", test="ICMP") > 0


# Series of other tools


def udp_file(mean, points):
    """Return a UDP upload whose final figure and points are these, in Mbit/s."""
    content = document("v4-cap-udp_flood.flent.gz")
    content["metadata"]["SERIES_META"]["UDP upload"]["MEAN_VALUE"] = mean
    start = content["raw_values"]["UDP upload"][0]["t"]
    content["raw_values"]["UDP upload"] = [
        {"t": start + 0.2 * at, "val": one} for at, one in enumerate(points)
    ]
    return load_object(content)


def test_the_servers_report_of_old_iperf_is_what_arrived():
    capture = udp_file(60.0, [99.0, 100.0, 101.0])
    assert value(capture, "throughput", direction="upload") == pytest.approx(60e6)
    assert value(capture, "send_rate", direction="upload") is None
    assert [one.value / 1e6 for one in intervals(capture, "send_rate")] == [
        pytest.approx(99.0), pytest.approx(100.0), pytest.approx(101.0)
    ]  # fmt: skip
    assert "throughput-absent" not in codes(capture)


def test_a_final_figure_above_all_points_is_no_rate():
    capture = udp_file(37.5, [2.5, 2.5, 2.5])  # bytes of each row, and of all rows
    assert not [one for one in capture.measurements if one.metric != "rtt_mean"
                and not one.metric.startswith("rtt")]  # fmt: skip
    assert "send-rate-absent" in codes(capture)


def test_the_cpu_of_a_host_is_read_over_time_and_by_reading():
    content = document("v4-ping-cpu-irtt.flent")
    start = content["raw_values"]["cpu_stats_localhost"][0]["t"]
    content["raw_values"]["cpu_stats_localhost"] = [
        {"t": start, "load": 0.5, "cpu0": 0.2, "cpu1": 0.8},
        {"t": start + 1, "load": 0.3, "cpu0": 0.0, "cpu1": 0.6},
        {"t": start + 2, "load": 0.1, "cpu0": 0.2, "cpu1": 0.0},
        {"t": start + 4, "load": 0.0, "cpu0": 0.0, "cpu1": 0.0},
    ]
    capture = load_object(content)
    first, second, third, _last = intervals(capture, "cpu_busy")
    length = first.end_s - first.start_s
    assert (second.value, second.end_s - second.start_s) == (0.3, pytest.approx(1.0))
    assert third.start_s == second.end_s
    busy = (0.5 * length + 0.3 + 0.1) / (length + 4)
    assert value(capture, "cpu_busy", host="localhost") == pytest.approx(busy)
    most = (0.8 * length + 0.6) / (length + 4)
    assert value(capture, "cpu_busy_max", host="localhost") == pytest.approx(most)


def test_a_few_readings_of_the_cpu_are_not_the_whole_run():
    content = document("v4-ping-cpu-irtt.flent")
    del content["raw_values"]["cpu_stats_localhost"][4:]
    capture = load_object(content)
    assert len(intervals(capture, "cpu_busy")) == 4
    assert value(capture, "cpu_busy", host="localhost") is None
    assert "cpu-absent" in codes(capture)


def test_the_loss_of_irtt_is_that_of_its_counts():
    content = document("v4-voip.flent")
    content["metadata"]["SERIES_META"]["VoIP"]["PACKETS_RECEIVED"] = 111
    capture = load_object(content)
    assert value(capture, "loss", test="VoIP") == pytest.approx(37 / 148)
    assert value(capture, "jitter", test="VoIP") == pytest.approx(32.451e-6)
    assert value(capture, "rtt_mean", test="VoIP") == pytest.approx(178.796e-6)


def test_the_round_trips_of_a_call_follow_each_other():
    spans = intervals(load("v4-voip.flent"), "rtt_mean")
    assert sum(one.end_s - one.start_s for one in spans) == pytest.approx(2.96)


def test_no_series_is_dropped_in_silence():
    texts = [one.text for one in load("v4-ping-cpu-irtt.flent").caveats]
    (unread,) = [text for text in texts if text.startswith("not read")]
    assert "qdisc_stats_localhost (backlog_bytes" in unread
    (sockets,) = [
        one.text
        for one in load("v4-cap-tcp_nup-3-sockstats.flent.gz").caveats
        if one.code == "series-unread"
    ]
    assert sockets.startswith("not read: sockets (tcp_bbr_bw,")
    assert "tcp_rtt" in sockets
    (call,) = [o.text for o in load("v4-voip.flent").caveats if "not read" in o.text]
    assert call == "not read: VoIP (delay, induced_delay, jitter, loss)"


def test_pings_are_told_apart_by_their_number():
    content = ping_file(25)
    for part in ("results", "raw_values"):
        content[part]["Ping (ms)::2"] = content[part].pop("Ping (ms) ICMP")
    metas = content["metadata"]["SERIES_META"]
    metas["Ping (ms)::2"] = metas.pop("Ping (ms) ICMP")
    assert value(load_object(content), "rtt_mean", test="2") is not None
