"""Loaders of counters: expected values of the shared corpus, then hand-made files."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import LOADERS, load
from patchstudy.records import Capture, RawFile


def read(tool: str, text: str) -> Capture:
    raw = RawFile.of(Path("file"), text.encode())
    assert LOADERS[tool].sniff(raw)
    return LOADERS[tool].load(raw)


def value(capture: Capture, metric: str, **labels: str) -> float:
    (found,) = [
        one.value
        for one in capture.measurements
        if one.metric == metric and one.labels == labels
    ]
    return found


def expected(shared: Path, tool: str) -> list[tuple[Path, dict]]:
    with (shared / "corpus/sys/MANIFEST.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["tool"] == tool]
    folder = shared / "corpus/sys"
    return [(folder / row["path"], json.loads(row["expected"])) for row in rows]


def sums(capture: Capture, metric: str) -> float:
    return sum(one.value for one in capture.measurements if one.metric == metric)


def test_nstat_counts_are_those_of_the_corpus(shared):
    files = [row for row in expected(shared, "nstat") if row[0].suffix == ".json"]
    assert len(files) == 3
    for path, wanted in files:
        capture = load(path)
        assert len(capture.measurements) == wanted["counters"]
        assert value(capture, "event:IpForwDatagrams") == wanted["IpForwDatagrams"]


def test_proc_net_dev_counts_are_those_of_the_corpus(shared):
    columns = {"rx_drop": "rx_dropped", "tx_drop": "tx_dropped"}
    for path, wanted in expected(shared, "proc-netdev"):
        capture = load(path)
        devices = {name: row for name, row in wanted.items() if isinstance(row, dict)}
        assert devices
        for device, row in devices.items():
            for column, count in row.items():
                metric = f"event:{columns.get(column, column)}"
                assert value(capture, metric, interface=device) == count


def test_softnet_sums_are_those_of_the_corpus(shared):
    for path, wanted in expected(shared, "proc-softnet"):
        if "error" in wanted:
            with pytest.raises(CaptureError, match="4 columns"):
                load(path)
            continue
        capture = load(path)
        for name in ("processed", "dropped", "time_squeeze"):
            metric = f"event:softnet_{name}"
            assert value(capture, metric) == wanted[f"{name}_sum"]
            assert sums(capture, metric) == 2 * wanted[f"{name}_sum"]


def test_ethtool_counts_are_those_of_the_corpus(shared):
    files = [row for row in expected(shared, "ethtool") if "-S-" in row[0].name]
    assert len(files) == 8
    for path, wanted in files:
        if "text" in wanted:
            with pytest.raises(CaptureError, match="no counters; this is not zero"):
                load(path)
            continue
        capture = load(path)
        assert len(capture.measurements) == wanted["counters"]
        name, count = wanted["first"]
        assert capture.measurements[0].metric == f"event:{name}"
        assert capture.measurements[0].value == int(count)


def test_ip_link_counts_are_those_of_the_corpus(shared):
    capture = load(shared / "corpus/sys/ip/cap-s-j-before.json")
    assert len(capture.facts["interfaces"]) == 5
    assert value(capture, "event:tx_packets", interface="hr1") == 684094


@pytest.mark.parametrize("name", ["cap-s-j-after.json", "cap-s-j-htb.json"])
def test_tc_counts_are_those_of_the_corpus(shared, name):
    wanted = dict(expected(shared, "tc"))[shared / "corpus/sys/tc" / name]
    capture = load(shared / "corpus/sys/tc" / name)
    for metric in ("event:qdisc_drops", "event:qdisc_packets"):
        counts = [one.value for one in capture.measurements if one.metric == metric]
        assert counts == wanted[metric.removeprefix("event:qdisc_")]


def test_tc_drops_are_of_all_packets_offered(shared):
    capture = load(shared / "corpus/sys/tc/cap-s-j-after.json")
    (tbf,) = [
        one
        for one in capture.measurements
        if one.metric == "drops" and one.labels["qdisc"] == "tbf"
    ]
    assert (tbf.value, tbf.exposure) == (1240, 2015)
    assert tbf.labels["direction"] == "tx"
    assert (tbf.labels["handle"], tbf.labels["interface"]) == ("8136:", "hr1")


def test_the_tables_of_other_programs_are_not_taken_for_tc(shared):
    with pytest.raises(CaptureError, match="no loader recognises it"):
        load(shared / "corpus/sys/tc/ne-qdisc-results.json")


HEADER = """Inter-|   Receive    |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets
"""


def test_proc_net_dev_needs_no_blank_after_the_colon():
    row = "eth0:123 5 4 3 0 0 0 0 9 8 7 6 0 0 0 0\n"
    capture = read("proc_net_dev", HEADER + row)
    assert value(capture, "event:rx_bytes", interface="eth0") == 123
    drops = [one for one in capture.measurements if one.metric == "drops"]
    assert [(one.value, one.exposure) for one in drops] == [(3, 5), (6, 8)]


def test_proc_net_dev_keeps_a_colon_in_a_name():
    row = "eth0:1: 123 5 4 3 0 0 0 0 9 8 7 6 0 0 0 0\n"
    capture = read("proc_net_dev", HEADER + row)
    assert value(capture, "event:rx_packets", interface="eth0:1") == 5


def test_a_cut_row_of_proc_net_dev_is_refused_with_its_line():
    with pytest.raises(CaptureError, match=r"file:3: 'eth0: 1 2' is not an interface"):
        read("proc_net_dev", HEADER + "eth0: 1 2\n")


def test_softnet_takes_the_cpu_from_column_13():
    row = "0000000a " + "00000000 " * 11 + "00000003\n"
    capture = read("softnet_stat", row)
    assert value(capture, "event:softnet_processed", cpu="3") == 10
    assert capture.counter_bits == 32


def test_softnet_counts_the_rows_of_old_kernels():
    capture = read("softnet_stat", ("0000000a " + "00000000 " * 8 + "\n") * 2)
    assert value(capture, "event:softnet_processed", cpu="1") == 10
    assert value(capture, "event:softnet_processed") == 20


def test_ethtool_splits_at_the_last_colon():
    text = "# ethtool -S eth0\nNIC statistics:\n     rxq0: rx_bytes: 12\n"
    capture = read("ethtool_s", text)
    assert value(capture, "event:rxq0: rx_bytes") == 12
    assert capture.command == "ethtool -S eth0"


def test_ethtool_tells_gauges_from_counters():
    text = "NIC statistics:\n     peer_ifindex: 2\n     be_on_die_temperature: 54\n"
    assert [one.labels for one in read("ethtool_s", text).measurements] == [
        {"kind": "gauge"},
        {"kind": "gauge"},
    ]


def test_ethtool_output_of_two_calls_is_told_apart():
    text = "NIC statistics:\n     drops: 2\nNIC statistics:\n     drops: 3\n"
    capture = read("ethtool_s", text)
    assert value(capture, "event:drops", section="1") == 2
    assert value(capture, "event:drops", section="2") == 3


GROUPS = """\
[ {
        "ifname": "eth0",
        "eth-phy": {},
        "eth-mac": { "FramesReceivedOK": 7 },
        "rmon": {
            "rx-pktsNtoM": [
                { "low": 0, "high": 64, "val": 1 },
                { "low": 65, "high": 127, "val": 2 },
                { "low": 1024, "high": 0, "val": 3 } ]
        } } ]
"""
GROUPS_TEXT = """\
Standard stats for eth0:
eth-mac-FramesReceivedOK: 7
rx-rmon-etherStatsPkts64Octets: 1
rx-rmon-etherStatsPkts65to127Octets: 2
rx-rmon-etherStatsPkts1024toMaxOctets: 3
"""


def test_ethtool_groups_are_the_same_as_text_and_as_json():
    told = read("ethtool_s", GROUPS_TEXT).measurements
    assert read("ethtool_s", GROUPS).measurements == told
    assert {one.labels["interface"] for one in told} == {"eth0"}


@pytest.mark.parametrize(
    "text", ["Standard stats for eth0:\n", '[ { "ifname": "eth0", "eth-phy": {} } ]\n']
)
def test_groups_without_a_counter_are_not_zero(text):
    with pytest.raises(CaptureError, match="the driver offers no"):
        read("ethtool_s", text)


def test_ethtool_names_a_line_that_is_no_counter():
    with pytest.raises(CaptureError, match=r"file:2: 'rx: many' is not a name"):
        read("ethtool_s", "NIC statistics:\n     rx: many\n")


@pytest.mark.parametrize(
    ("key", "bits"),
    [
        pytest.param("stats64", 64, id="64 bits"),
        pytest.param("stats", 32, id="old netlink attribute"),
    ],
)
def test_ip_link_reads_errors_and_drops_with_their_packets(key, bits):
    side = {"bytes": 100, "packets": 10, "errors": 1, "dropped": 2}
    link = {"ifindex": 2, "ifname": "eth0", "mtu": 1500, key: {"rx": side, "tx": side}}
    capture = read("ip_link", json.dumps([{}, link]))
    labels = {"interface": "eth0", "direction": "rx"}
    assert value(capture, "drops", **labels) == 2
    assert value(capture, "errors", **labels) == 1
    assert {one.exposure for one in capture.measurements} == {None, 10}
    assert capture.counter_bits == bits
    assert capture.facts == {"interfaces": {"eth0": {"mtu": 1500}}}


def test_ip_link_without_counters_says_how_to_call_ip():
    with pytest.raises(CaptureError, match="holds no counters; call ip with -s -j"):
        read("ip_link", '[{"ifindex":1,"ifname":"lo","mtu":65536}]')


def test_nstat_refuses_what_is_not_a_counter():
    with pytest.raises(CaptureError, match=r"file:kernel.A: -1 is not a counter"):
        read("nstat", '{"kernel":{"A":-1}}')


def test_nstat_without_counters_says_how_to_call_nstat():
    with pytest.raises(CaptureError, match="holds no counter; call nstat"):
        read("nstat", '{"kernel":{}}')


def test_broken_json_is_refused_with_the_line():
    with pytest.raises(CaptureError, match=r"file:2: not JSON .*was it cut short"):
        read("nstat", '{"kernel":{"A":1,\n"B"')


def test_json_that_is_nested_too_deeply_is_refused():
    with pytest.raises(CaptureError, match="not usable as JSON"):
        read("nstat", '{"kernel":{"A":1,"B":' + "[" * 200_000)


def test_json_with_a_number_that_is_none_is_refused():
    with pytest.raises(CaptureError, match="NaN is not a number in JSON"):
        read("nstat", '{"kernel":{"A":1,"B":NaN}}')


def test_uptime_is_read_with_its_resolution():
    capture = read("uptime", "16.78 0.23\n")
    assert value(capture, "event:uptime") == 16.78
    assert capture.measurements[0].resolution == 0.01
    assert capture.cumulative


def test_a_number_at_the_end_of_a_file_without_line_end_is_doubted():
    (caveat,) = read("uptime", "16.78 0.23").caveats
    assert caveat.code == "no-line-end"


def test_kprobe_profile_gives_hits_and_misses_of_each_probe():
    line = f"  {'lab_unmap':<44} {157635:>15} {10:>15}\n"
    capture = read("kprobe_profile", line)
    assert value(capture, "event:kprobe_hits", probe="lab_unmap") == 157635
    assert value(capture, "event:kprobe_misses", probe="lab_unmap") == 10


def test_plain_counters_are_read_with_and_without_a_colon():
    capture = read("counters", "alloc_count 5\nalloc_fail: 0\n")
    assert value(capture, "event:alloc_count") == 5
    assert value(capture, "event:alloc_fail") == 0
    assert capture.cumulative


def test_a_line_of_several_counters_is_read():
    capture = read("counters", "TCP: inuse 4 orphan 0\n")
    assert value(capture, "event:TCP.inuse") == 4


def test_a_word_among_plain_counters_is_a_fact():
    capture = read("counters", "variant pool\nhits 1\nruns 2\npool_level 9\n")
    assert capture.facts == {"variant": "pool"}
    assert value(capture, "event:pool_level", kind="gauge") == 9


def test_what_a_driver_was_set_to_is_a_fact_and_no_counter():
    capture = read("counters", "hits 1\nruns 2\ntimer_pair_ns_x1000 180000\n")
    assert capture.facts == {"timer_pair_ns_x1000": 180000}
    assert value(capture, "event:timer_pair_ns_x1000", kind="gauge") == 180000


def test_a_counter_that_stands_twice_is_refused():
    with pytest.raises(CaptureError, match=r"file:2: 'hits 2' is not a new name"):
        read("counters", "hits 1\nhits 2\n")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("16.78 0.23\n", id="uptime"),
        pytest.param("0000000a " + "00000000 " * 8 + "\n", id="softnet"),
        pytest.param("hits 1\nthe fan was loud\n", id="one line does not fit"),
        pytest.param("rx-checksumming: on\ntx-checksumming: on\n", id="words only"),
        pytest.param("main;read 12\n", id="folded"),
        pytest.param("MemTotal:  1024 kB\n", id="a unit behind the number"),
        pytest.param("  lab_map   157645   0\n", id="kprobe profile"),
        pytest.param("rate 12.5\n", id="not a whole number"),
        pytest.param("12\n", id="no name"),
    ],
)
def test_what_is_not_a_plain_counter_file(text):
    assert not LOADERS["counters"].sniff(RawFile.of(Path("file"), text.encode()))


def test_the_colours_of_a_terminal_are_no_part_of_the_text(tmp_path):
    path = tmp_path / "link.txt"
    path.write_text(
        "1: \x1b[36mlo: \x1b[0m<LOOPBACK,UP> mtu 65536 qdisc noqueue state UNKNOWN\n"
        "    link/loopback \x1b[33m00:00:00:00:00:00\x1b[0m brd 00:00:00:00:00:00\n"
        "    RX:  bytes packets errors dropped  missed   mcast\n"
        "            64       2      0       0       0       0\n"
        "    TX:  bytes packets errors dropped carrier collsns\n"
        "            64       2      0       0       0       0\n"
    )
    assert value(load(path), "event:rx_bytes", interface="lo") == 64
