"""The text of tc -s qdisc and tc -s class."""

from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import load, tc_class, tc_qdisc
from patchstudy.records import Capture, RawFile

GOLDEN = Path(__file__).parent / "golden" / "loaders"
SENT = " Sent 257540 bytes 384 pkt (dropped 631, overlimits 7 requeues 2) \n"
BACKLOG = " backlog 1514b 1p requeues 0\n"


def read(module, text: str) -> Capture:
    raw = RawFile.of(Path("file"), text.encode())
    assert module.sniff(raw)
    return module.load(raw)


def values(capture: Capture) -> dict[str, float]:
    return {one.metric: one.value for one in capture.measurements}


@pytest.mark.parametrize(
    ("first", "labels"),
    [
        pytest.param(
            "qdisc tbf 8136: dev hr1 root refcnt 3 rate 8Mbit burst 16Kb lat 14.3ms ",
            {"qdisc": "tbf", "handle": "8136:", "interface": "hr1"},
            id="root",
        ),
        pytest.param(
            "qdisc fq_codel 0: dev eth0 parent :4 limit 10240p flows 1024",
            {"qdisc": "fq_codel", "handle": "0:", "interface": "eth0", "parent": ":4"},
            id="below mq",
        ),
        pytest.param(
            "qdisc pfifo_fast 0: root refcnt 2 bands 3 priomap 1 2 2",
            {"qdisc": "pfifo_fast", "handle": "0:"},
            id="interface not told",
        ),
        pytest.param(
            "qdisc ingress ffff: dev eth0 parent ffff:fff1 ---------------- ",
            {"qdisc": "ingress", "handle": "ffff:", "interface": "eth0"},
            id="ingress",
        ),
    ],
)
def test_a_qdisc_is_told_by_its_first_line(first, labels):
    capture = read(tc_qdisc, f"{first}\n{SENT}{BACKLOG}")
    assert values(capture)["event:qdisc_packets"] == 384
    assert values(capture)["event:qdisc_backlog"] == 1514
    (drops,) = [one for one in capture.measurements if one.metric == "drops"]
    assert drops.labels == {**labels, "direction": "tx"}
    assert (drops.value, drops.exposure) == (631, 384 + 631)


def test_a_rounded_backlog_is_left_out():
    text = f"qdisc fq 1: dev a root \n{SENT} backlog 12Kb 8p requeues 0\n"
    assert "event:qdisc_backlog" not in values(read(tc_qdisc, text))


def test_a_class_has_its_own_counters():
    capture = load(GOLDEN / "tc_class/cap-class-htb.txt")
    assert values(capture)["event:class_drops"] == 631
    assert values(capture)["event:class_bytes"] == 257540
    assert "drops" not in values(capture)
    assert capture.facts["classes"][0]["leaf"] == "10:"


@pytest.mark.parametrize("nested", [True, False])
def test_json_of_a_class_is_read(nested):
    counts = '"bytes":5,"packets":4,"drops":3,"overlimits":2,"requeues":1'
    stats = f'"stats":{{{counts}}}' if nested else counts
    text = f'[{{"class":"htb","handle":"1:10","parent":"1:",{stats}}}]'
    assert values(read(tc_class, text))["event:class_drops"] == 3


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(" Sent 257540 bytes 384 pkt (dro\n", id="cut"),
        pytest.param(SENT + SENT, id="twice"),
    ],
)
def test_counters_that_do_not_fit_are_refused(text):
    with pytest.raises(CaptureError, match=r"file:\d: 'Sent .*is not the counters of"):
        read(tc_qdisc, f"qdisc fq 1: dev a root \n{text}")


def test_text_without_counters_says_how_to_call_tc():
    with pytest.raises(CaptureError, match="holds no counters; call tc with -s"):
        read(tc_qdisc, "qdisc noqueue 0: dev lo root refcnt 2 \n")


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        pytest.param("cap-s-before.txt", [(0, 0, 0)] * 5, id="five"),
        pytest.param("cap-s-d-tbf.txt", [(528118, 775, 1240)], id="tbf"),
    ],
)
def test_sent_and_dropped_are_as_printed(name, sent):
    capture = load(GOLDEN / "tc_qdisc" / name)
    columns = [
        [
            one.value
            for one in capture.measurements
            if one.metric == f"event:qdisc_{key}"
        ]
        for key in ("bytes", "packets", "drops")
    ]
    assert list(zip(*columns, strict=True)) == sent
