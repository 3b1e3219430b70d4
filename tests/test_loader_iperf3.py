"""iperf3: what reached the receiver, what was lost, and what the file cannot tell."""

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchstudy.errors import CaptureError
from patchstudy.loaders import iperf3, read
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "iperf3"
NAMES = sorted(
    path.name
    for path in FILES.glob("*.json")
    if ".expected." not in path.name and "3runs" not in path.name
)


def load(name):
    return iperf3.load(read(FILES / name))


def document(name):
    """Return a captured document as Python objects, to be changed by hand."""
    text = (FILES / name).read_text()
    return json.loads(text[text.index("{") :].replace("-nan", "NaN"))


def load_object(content):
    return iperf3.load(RawFile.of(Path("run.json"), json.dumps(content).encode()))


def whole(capture, metric, **labels):
    """Return the one whole-run value with exactly these labels, or None."""
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


def intervals(capture, metric):
    return [
        one
        for one in capture.measurements
        if one.metric == metric and one.start_s is not None
    ]


def codes(capture):
    return [one.code for one in capture.caveats]


# What is read


def test_throughput_is_what_the_receiver_got_in_the_receivers_time():
    capture = load("v312-tcp-fwd.json")
    assert value(capture, "throughput") == pytest.approx(179492472 * 8 / 5.004026)
    assert value(capture, "send_rate") == pytest.approx(182976512 * 8 / 5.000089)


def test_a_forward_run_has_intervals_of_what_was_sent():
    capture = load("v312-tcp-fwd.json")
    assert intervals(capture, "throughput") == []
    first = intervals(capture, "send_rate")[0]
    assert (first.start_s, first.end_s) == (0, 1.000364)
    assert first.value == pytest.approx(308820022.2)


def test_a_reverse_run_has_intervals_of_what_was_received():
    capture = load("lab-tcp-egress80.json")
    assert intervals(capture, "send_rate") == []
    assert intervals(capture, "throughput")[0].value == pytest.approx(55740473.6)


def test_intervals_without_any_payload_stay_in():
    values = [
        one.value
        for one in intervals(load("v312-tcp-stall-zero-interval.json"), "send_rate")
    ]
    assert len(values) == 7
    assert 0.0 in values


def test_omitted_seconds_are_in_no_value():
    capture = load("v312-tcp-bidir-p2-omit1.json")
    assert len(intervals(capture, "send_rate")) == 4
    assert value(capture, "throughput", direction="forward") == pytest.approx(
        286445251.664
    )


def test_the_round_trip_time_is_the_senders_in_seconds():
    assert value(load("v312-tcp-fwd.json"), "rtt_mean") == pytest.approx(5514e-6)


def test_the_round_trip_time_of_a_receiving_socket_is_not_taken():
    capture = load("v37-tcp-bidir-p2.json")
    assert value(capture, "rtt_mean", direction="forward") == pytest.approx(38590.5e-6)
    assert value(capture, "rtt_mean", direction="reverse") is None


def test_retransmits_come_with_the_number_of_segments():
    found = whole(load("v312-tcp-fwd.json"), "retransmits")
    assert found.value == 0
    assert found.exposure == pytest.approx(182976512 / 1448)


def test_the_workload_says_what_was_run():
    assert load("v312-udp-omit2-loss.json").workload == {
        "protocol": "UDP",
        "direction": "forward",
        "streams": 1,
        "duration_s": 4,
        "omit_s": 2,
        "target_bitrate": 20e6,
        "blksize": 1448,
        "mss": None,
    }


def test_start_time_and_version_are_read():
    capture = load("v312-tcp-fwd.json")
    assert capture.started_at == "2026-11-30T13:52:28Z"
    assert capture.tool_version == "3.12"


def test_the_cpu_of_the_process_is_a_fact_and_no_metric():
    capture = load("v312-tcp-fwd.json")
    assert "iperf3_process_cpu_percent" in capture.facts
    assert not [one for one in capture.measurements if one.metric.startswith("cpu")]


def test_text_before_the_document_is_passed_over_with_a_note():
    capture = load("v312-tcp-verbose-mss.json")
    assert value(capture, "throughput") == pytest.approx(281267920.637)
    assert capture.workload["mss"] == 1000
    assert "text-around" in codes(capture)


# Both directions


def test_repeated_keys_of_old_bidir_files_are_both_read():
    capture = load("v37-tcp-bidir-p2.json")
    assert capture.workload["direction"] == "bidir"
    forward = value(capture, "throughput", direction="forward")
    reverse = value(capture, "throughput", direction="reverse")
    assert forward == pytest.approx(194980756.371)
    assert reverse == pytest.approx(200373439.518)
    assert value(capture, "retransmits", direction="reverse") == 4


def test_streams_add_up_to_their_direction_and_give_fairness():
    capture = load("v37-tcp-bidir-p2.json")
    streams = [
        value(capture, "throughput", direction="forward", stream=stream)
        for stream in ("1", "2")
    ]
    assert sum(streams) == pytest.approx(194980756.371)
    jain = sum(streams) ** 2 / (2 * sum(one**2 for one in streams))
    assert value(capture, "fairness", direction="forward") == pytest.approx(jain)


# Where iperf3 misleads


def test_an_overdriven_sender_does_not_raise_throughput():
    capture = load("lab-udp-up-20mbit.json")
    assert value(capture, "send_rate") == pytest.approx(257810722.7)
    assert value(capture, "throughput") == pytest.approx(19574623.1)
    assert value(capture, "loss") == pytest.approx(84030 / 92071)


def test_loss_says_of_how_many_packets():
    found = whole(load("v312-udp-loss2pct.json"), "loss")
    assert (found.value, found.exposure) == (385 / 21579, 21579)
    assert found.resolution == 1 / 21579


def test_losses_of_omitted_seconds_are_taken_out_by_the_bytes():
    capture = load("v312-udp-omit2-loss.json")
    assert value(capture, "loss") == pytest.approx(352 / 6906)
    assert "loss-by-bytes" in codes(capture)


@pytest.mark.parametrize(
    ("name", "packets"),
    [
        ("v312-udp-rev-zero-received.json", 518),
        ("v3011-udp-rev-zero-received-nan.json", 537),
    ],
)
def test_everything_lost_is_a_loss_of_one_though_the_file_says_none(name, packets):
    capture = load(name)
    assert value(capture, "loss") == 1
    assert whole(capture, "loss").exposure == packets
    assert value(capture, "throughput") == 0
    assert value(capture, "jitter") is None
    assert {"all-lost", "zero-throughput"} <= set(codes(capture))


def test_minus_nan_is_absent_with_a_note():
    assert "not-a-number" in codes(load("v3011-udp-rev-zero-received-nan.json"))


def test_old_udp_throughput_is_an_estimate_and_says_so():
    capture = load("v39-udp-loss.json")
    expected = 19995073.4959 * (1 - 174 / 5356)
    assert value(capture, "throughput") == pytest.approx(expected)
    assert "throughput-estimated" in codes(capture)


def test_old_udp_without_loss_and_jitter_does_not_tell_what_arrived():
    content = document("v39-udp-loss.json")
    content["end"]["sum"] |= {"lost_packets": 0, "jitter_ms": 0}
    capture = load_object(content)
    assert value(capture, "throughput") is None
    assert value(capture, "loss") is None
    assert "receiver-unknown" in codes(capture)


def test_what_is_queued_at_the_end_of_a_reverse_run_is_no_loss():
    content = document("v312-udp-loss2pct.json")
    content["start"]["test_start"]["reverse"] = 1
    for one in content["intervals"]:
        one["sum"]["sender"] = False
    content["end"]["sum_received"]["lost_packets"] = 1
    capture = load_object(content)
    assert value(capture, "loss") == 1 / 21579


def test_datagrams_that_neither_arrived_nor_count_as_lost_are_a_doubt():
    content = document("v312-udp-loss2pct.json")
    content["end"]["sum_received"]["lost_packets"] = 1
    assert "loss-unsettled" in codes(load_object(content))


@pytest.mark.parametrize("lost", [-130, 30_000])
def test_an_impossible_loss_is_absent(lost):
    content = document("lab-udp-up-20mbit.json")
    content["end"]["sum_received"] |= {"lost_packets": lost, "packets": 20_000}
    content["end"]["sum_sent"]["bytes"] = 0
    capture = load_object(content)
    assert value(capture, "loss") is None
    assert "loss-absent" in codes(capture)


def test_wrapped_retransmits_are_absent():
    content = document("v312-tcp-fwd.json")
    content["end"]["sum_sent"]["retransmits"] = 4294967294
    capture = load_object(content)
    assert value(capture, "retransmits") is None
    assert "retransmits-wrapped" in codes(capture)


def test_a_servers_file_tells_what_it_received_and_no_more():
    capture = load("v312-server-json-tcp.json")
    assert value(capture, "throughput") == pytest.approx(136509031.844)
    assert value(capture, "send_rate") is None
    assert value(capture, "retransmits") is None
    assert {"sender-unknown", "retransmits-absent"} <= set(codes(capture))


def test_a_server_that_sent_does_not_know_what_arrived():
    content = document("v312-udp-rev-zero-received.json")
    start, end = content["start"], content["end"]
    start["accepted_connection"] = start.pop("connecting_to")
    end["cpu_utilization_percent"]["remote_total"] = 25.4  # of the client before
    for part in (one["sum"] for one in content["intervals"]):
        part["sender"] = True
    end["sum_sent"] |= {"bytes": 163840, "seconds": 1.0, "packets": 5}
    capture = load_object(content)
    assert value(capture, "send_rate") == 163840 * 8
    assert value(capture, "throughput") is None
    assert value(capture, "loss") is None
    assert "receiver-unknown" in codes(capture)


def test_an_end_that_its_intervals_do_not_bear_out_is_doubted():
    content = document("v312-tcp-fwd.json")
    content["end"]["sum_sent"]["bytes"] *= 2
    assert "interval-mismatch" in codes(load_object(content))


# Runs that failed


def test_an_aborted_run_that_looks_finished_keeps_its_intervals_only():
    capture = load("v312-err-server-killed.json")
    assert capture.error.text == "the server has terminated"
    assert [one.end_s for one in capture.measurements] == [1.000101, 2.000122, 3.000087]


def test_a_receiver_that_reported_nothing_is_a_failed_run():
    content = document("v312-err-server-killed.json")
    del content["error"]
    capture = load_object(content)
    assert "did the server end early" in capture.error.text
    assert value(capture, "throughput") is None


def test_the_old_prefix_of_an_error_is_taken_off():
    content = document("v312-tcp-fwd.json") | {"error": "error - no route to host"}
    assert load_object(content).error.text == "no route to host"


def test_a_document_without_results_takes_the_error_from_the_line_after_it():
    content = {"start": {"connected": [], "version": "iperf 3.9"}, "end": {}}
    text = json.dumps(content) + "\niperf3: error - Bad file descriptor\n"
    capture = iperf3.load(RawFile.of(Path("run.json"), text.encode()))
    assert capture.error.text == "Bad file descriptor"


def test_a_cut_file_says_in_which_line():
    data = (FILES / "v312-tcp-fwd.json").read_bytes()
    with pytest.raises(CaptureError, match=r"json:\d+: not JSON .*was it cut short"):
        iperf3.load(RawFile.of(Path("run.json"), data[: len(data) * 2 // 3]))


def test_two_documents_keep_their_values_apart():
    capture = load("v312-logfile-appended-3runs.json")
    assert value(capture, "throughput") is None
    assert value(capture, "throughput", document="2") == pytest.approx(283410492.423)
    assert capture.workload["documents"] == 3
    assert "several-documents" in codes(capture)


def test_the_same_run_twice_is_one_run():
    data = (FILES / "v312-tcp-fwd.json").read_bytes()
    capture = iperf3.load(RawFile.of(Path("run.json"), data + data))
    assert capture.measurements == load("v312-tcp-fwd.json").measurements
    assert "document-repeated" in codes(capture)


def test_a_failed_document_after_a_good_one_becomes_a_caveat():
    data = (FILES / "v312-server-json-tcp.json").read_bytes()
    failed = (
        b'{"start": {"connected": [], "version": "iperf 3.12"}, "error": "interrupt"}'
    )
    capture = iperf3.load(RawFile.of(Path("run.json"), data + failed))
    assert value(capture, "throughput") == pytest.approx(136509031.844)
    assert capture.error is None
    assert "document-failed" in codes(capture)


def test_a_second_document_that_is_cut_is_refused():
    data = (FILES / "v312-tcp-fwd.json").read_bytes()
    with pytest.raises(CaptureError, match="was it cut short"):
        iperf3.load(RawFile.of(Path("run.json"), data + data[:3000]))


def test_a_document_inside_another_is_refused():
    data = b'{"client": ' + (FILES / "v312-tcp-fwd.json").read_bytes() + b"}"
    with pytest.raises(CaptureError, match="stands inside another"):
        iperf3.load(RawFile.of(Path("run.json"), data))


def test_the_error_of_a_spoiled_document_is_told():
    text = '{"start": {"connected": [],}, "error": "error - No route to host"}'
    with pytest.raises(CaptureError, match="its error says: No route to host"):
        iperf3.load(RawFile.of(Path("run.json"), text.encode()))


# Event streams


def test_an_event_stream_is_read_as_its_document():
    capture = load("v3171-jsonstream-bidir.jsonl")
    assert value(capture, "throughput", direction="forward") == pytest.approx(
        193908345.684
    )
    assert len(intervals(capture, "send_rate")) == 3


def test_the_document_after_its_own_events_is_not_counted_again():
    capture = load("v321-jsonstream-full-output.jsonl")
    assert value(capture, "throughput") == pytest.approx(400115740.72)
    assert len(intervals(capture, "send_rate")) == 2


def test_an_event_stream_without_its_end_is_a_failed_run_with_intervals():
    capture = load("derived-v3171-jsonstream-last-line-cut.jsonl")
    assert capture.error.text == "no end event; the run was cut short"
    assert len(intervals(capture, "send_rate")) == 3


def test_a_refused_connection_is_a_failed_run_of_events():
    assert "Connection refused" in load("v3171-jsonstream-refused.jsonl").error.text


def test_deep_nesting_is_a_capture_error():
    text = '{"start": {"connected": ' + "[" * 200_000
    with pytest.raises(CaptureError):
        iperf3.load(RawFile.of(Path("run.json"), text.encode()))


@pytest.mark.parametrize(
    "text",
    [
        '{"sysstat": {"hosts": [{"nodename": "a"}]}}',
        '{"version": 4, "metadata": {"BATCH_NAME": null}}',
        '{"boot_id": "x", "commands": {"client": "iperf3 -c 192.0.2.1 -J"}}',
        "Connecting to host 192.0.2.2, port 5201",
        "",
    ],
)
def test_other_files_are_not_taken_for_iperf3(text):
    assert not iperf3.sniff(RawFile.of(Path("x.json"), text.encode()))


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
        inner = place[key]
        if not isinstance(inner, dict | list) or data.draw(st.integers(0, 4)) == 0:
            place[key] = data.draw(JSON)
            break
        place = inner
    try:
        capture = load_object(content)
    except CaptureError:
        return
    assert all(abs(one.value) < float("inf") for one in capture.measurements)


# The corpus beside the checkout


def rows(shared):
    with (shared / "corpus/net/MANIFEST.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["tool"] == "iperf3" and ".json" in row["path"]:
                yield shared / "corpus/net" / row["path"], json.loads(row["expected"])


def result(path):
    """Return what the file gives; None where it is refused."""
    raw = read(path)
    try:
        return iperf3.load(raw) if iperf3.sniff(raw) else None
    except CaptureError:
        return None


def expected_values(expected):
    """Return (metric, labels, value, tolerance) of a row of the manifest."""
    for direction in ("forward", "reverse"):
        if direction in expected:
            for metric, _labels, number, near in expected_values(expected[direction]):
                yield metric, {"direction": direction}, number, near
    estimated = "throughput_is_estimate" in expected or "jitter_ms" in expected
    names = {
        "throughput_bits_per_second": ("throughput", 1, 2e-4 if estimated else 1e-6),
        "retransmits": ("retransmits", 1, 1e-9),
    }
    for key, (metric, factor, near) in names.items():
        if expected.get(key) is not None:
            yield metric, {}, expected[key] * factor, near
    percent = expected.get("lost_percent_by_bytes", expected.get("lost_percent"))
    if percent is not None:
        yield "loss", {}, percent / 100, 1e-4


def test_the_corpus_is_read_as_it_was_worked_out_by_hand(shared):
    seen = 0
    for path, expected in rows(shared):
        if "documents" in expected or "error" in expected:
            continue
        capture = result(path)
        assert capture, path.name
        assert capture.error is None, path.name
        assert capture.workload["direction"] == expected["direction"], path.name
        assert capture.workload["streams"] == expected["streams"], path.name
        for metric, labels, number, near in expected_values(expected):
            found = value(capture, metric, **labels)
            assert found == pytest.approx(number, rel=near), (path.name, metric)
            seen += 1
    assert seen > 100


def test_the_corpus_has_as_many_intervals_as_were_counted(shared):
    for path, expected in rows(shared):
        counted = expected.get("partial", expected).get("n_intervals")
        capture = result(path)
        if capture is None or counted is None:
            continue
        starts = {
            one.start_s for one in capture.measurements if one.start_s is not None
        }
        assert len(starts) == counted, path.name


def test_failed_runs_of_the_corpus_give_an_error_and_no_whole_run(shared):
    for path, expected in rows(shared):
        if "error" not in expected:
            continue
        capture = result(path)
        if capture is not None:
            assert capture.error is not None, path.name
            assert all(one.start_s is not None for one in capture.measurements)


def test_several_documents_of_the_corpus_are_kept_apart(shared):
    several = [(p, e["results"]) for p, e in rows(shared) if "documents" in e]
    assert several
    for path, results in several:
        capture = result(path)
        for number, expected in enumerate(results, start=1):
            labels = {"document": str(number)} if len(results) > 1 else {}
            want = pytest.approx(expected["throughput_bits_per_second"], rel=1e-6)
            assert value(capture, "throughput", **labels) == want, path.name


def test_no_other_file_of_the_corpus_is_taken_for_iperf3(shared):
    for path in sorted((shared / "corpus/net").glob("*/*")):
        if path.parent.name == "iperf3" or "truncated" in path.name:
            continue
        assert not iperf3.sniff(read(path)), path.name


def test_every_run_of_the_lab_is_read_without_a_doubt(shared):
    paths = sorted((shared / "lab").rglob("*.iperf3.json"))
    assert paths
    for path in paths:
        capture = result(path)
        assert capture is not None, path
        assert capture.error is None, path
        assert capture.caveats == (), path
        assert value(capture, "throughput") > 0, path


def test_the_first_interval_after_omitted_ones_begins_at_zero():
    content = document("v312-tcp-fwd.json")
    content["start"]["test_start"]["omit"] = 1
    first = content["intervals"][0]["sum"]
    first |= {"start": 0.499546, "end": 0.513598, "seconds": 1.013144}
    interval = intervals(load_object(content), "send_rate")[0]
    assert (interval.start_s, interval.end_s) == (0.0, 0.513598)
    assert interval.value == pytest.approx(first["bytes"] * 8 / 0.513598)


def test_losses_of_omitted_seconds_are_in_the_counts_of_old_versions():
    content = document("v39-udp-loss.json")
    content["end"]["sum"] |= {"lost_packets": 40, "packets": 100, "jitter_ms": 0.1}
    assert value(load_object(content), "loss") == 0.4
    content["start"]["test_start"]["omit"] = 1
    capture = load_object(content)
    assert value(capture, "loss") is None
    assert value(capture, "throughput") is None
    assert value(capture, "jitter") == pytest.approx(1e-4)
    assert "loss-absent" in codes(capture)
    content["end"]["sum"]["lost_packets"] = 0
    assert value(load_object(content), "loss") == 0
