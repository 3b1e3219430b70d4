"""The text of ip -s link; its JSON is tested with the other system loaders."""

from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import difference, ip_link, load
from patchstudy.records import Capture, RawFile

LINK = "3: hr1@if2: <BROADCAST,UP> mtu 1500 qdisc tbf state UP mode DEFAULT qlen 1000\n"
LINK += "    link/ether b2:0c:ce:c3:86:5a brd ff:ff:ff:ff:ff:ff link-netns x\n"
RX = "    RX:  bytes packets errors dropped  missed   mcast           \n"
OLD_RX = "    RX: bytes  packets  errors  dropped overrun mcast   \n"
TX = "    TX:  bytes packets errors dropped carrier collsns           \n"
TX_ROW = "    472983686  684094      3       4       5       6 \n"


def read(text: str) -> Capture:
    raw = RawFile.of(Path("file"), text.encode())
    assert ip_link.sniff(raw)
    return ip_link.load(raw)


def value(capture: Capture, metric: str, **labels: str) -> float:
    (found,) = [
        one.value
        for one in capture.measurements
        if one.metric == metric and one.labels == labels
    ]
    return found


@pytest.mark.parametrize(
    ("title", "column"),
    [
        pytest.param(RX, "event:rx_missed_errors", id="iproute2 6"),
        pytest.param(OLD_RX, "event:rx_over_errors", id="iproute2 4"),
    ],
)
def test_columns_are_named_by_their_titles(title, column):
    capture = read(f"{LINK}{title}     95667     740      1       2       9       8 \n")
    assert value(capture, "event:rx_bytes", interface="hr1") == 95667
    assert value(capture, column, interface="hr1") == 9
    assert value(capture, "event:rx_multicast", interface="hr1") == 8
    assert value(capture, "drops", interface="hr1", direction="rx") == 2
    assert capture.facts == {"interfaces": {"hr1": {"mtu": 1500, "qdisc": "tbf"}}}


def test_one_line_an_interface_is_read():
    text = f"{LINK}{TX}{TX_ROW}".replace("\n", "\\") + "\n"
    capture = read(text)
    assert value(capture, "event:tx_packets", interface="hr1") == 684094
    assert value(capture, "event:tx_carrier_errors", interface="hr1") == 5


def test_causes_of_errors_are_read():
    errors = "    TX errors: aborted   fifo  window heartbt transns\n  1 2 3 4 5\n"
    capture = read(f"{LINK}{TX}{TX_ROW}{errors}")
    assert value(capture, "event:tx_heartbeat_errors", interface="hr1") == 4
    assert value(capture, "event:tx_carrier_changes", interface="hr1") == 5


def test_rounded_numbers_are_refused():
    with pytest.raises(CaptureError, match=r"file:4: .* call ip without -h"):
        read(f"{LINK}{TX}     473M    684k      0       0       0       0 \n")


def test_text_without_counters_says_how_to_call_ip():
    with pytest.raises(CaptureError, match="holds no counters; call ip with -s"):
        read(LINK)


def test_text_and_json_of_one_moment_tell_the_same(shared):
    folder = shared / "corpus/sys/ip"
    text, other = (
        load(folder / name) for name in ("cap-s-before.txt", "cap-s-j-before.json")
    )
    assert len(text.facts["interfaces"]) == len(other.facts["interfaces"]) == 5
    assert value(text, "event:tx_packets", interface="hr1") == 684094
    assert value(other, "event:tx_packets", interface="hr1") == 684094


def test_a_pair_of_texts_is_subtracted(shared):
    folder = shared / "corpus/sys/ip"
    pair = [load(folder / f"cap-s-s-d-{one}.txt") for one in ("before", "after")]
    delta = difference(*pair)
    assert value(delta, "event:tx_packets", interface="hr1") == 684869 - 684094
