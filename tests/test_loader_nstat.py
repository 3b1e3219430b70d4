"""nstat as text, and the files of /proc that it reads."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import difference, load, nstat, proc_net_snmp
from patchstudy.records import Capture, RawFile

GOLDEN = Path(__file__).parent / "golden" / "loaders"
SNMP = "Ip: Forwarding InReceives\nIp: 1 687539\nTcp: MaxConn InSegs\nTcp: -1 7\n"


def raw(text: str) -> RawFile:
    return RawFile.of(Path("file"), text.encode())


def values(capture: Capture) -> dict[str, float]:
    return {one.metric: one.value for one in capture.measurements}


def test_the_third_column_is_a_rate_and_not_read():
    text = "#kernel\nIpInReceives                    2043               12.5\n"
    assert nstat.sniff(raw(text))
    assert values(nstat.load(raw(text))) == {"event:IpInReceives": 2043}


def test_text_and_json_tell_the_same(shared):
    folder = shared / "corpus/sys/nstat"
    for name in ("cap-a-z-after", "cap-delta"):
        text, other = (load(folder / f"{name}.{end}") for end in ("txt", "json"))
        assert values(text) == values(other)


def test_a_cut_line_is_refused_with_its_number():
    with pytest.raises(CaptureError, match=r"file:2: 'IpInRec' is not a new name"):
        nstat.load(raw("#kernel\nIpInRec\n"))


def test_text_without_a_counter_is_refused():
    with pytest.raises(CaptureError, match="holds no counter; call nstat"):
        nstat.load(raw("#kernel\n"))


def test_names_over_numbers_are_named_as_nstat_names_them():
    assert proc_net_snmp.sniff(raw(SNMP))
    capture = proc_net_snmp.load(raw(SNMP))
    assert values(capture)["event:IpInReceives"] == 687539
    assert values(capture)["event:TcpInSegs"] == 7


def test_settings_are_gauges():
    capture = proc_net_snmp.load(raw(SNMP))
    gauges = {one.metric for one in capture.measurements if one.labels}
    assert gauges == {"event:IpForwarding", "event:TcpMaxConn"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "Ip: A B\nIp: 1\n", "file:2: 1 numbers of 'Ip:' below 2", id="cut"
        ),
        pytest.param("Ip: A\nIp: 1\nTcp: B\n", "file:3: a line of names", id="no line"),
        pytest.param("Ip: A\nTcp: 1\n", "file:2: 1 numbers of 'Tcp:'", id="prefix"),
        pytest.param(
            "Ip: A\nIp: -1\n", "file:2: -1 is not a count of IpA", id="negative"
        ),
    ],
)
def test_lines_that_do_not_fit_are_refused(text, problem):
    with pytest.raises(CaptureError, match=problem):
        proc_net_snmp.load(raw(text))


def test_the_kernel_forwarded_as_many_as_nstat_says():
    folder = GOLDEN / "proc_net_snmp"
    pair = [load(folder / f"cap-proc-snmp-{one}.txt") for one in ("before", "after")]
    delta = difference(*pair)
    assert values(delta)["event:IpForwDatagrams"] == 2029
    assert values(load(GOLDEN / "nstat/cap-delta.txt"))["event:IpForwDatagrams"] == 2029


def test_counts_are_those_of_the_corpus(shared):
    folder = shared / "corpus/sys"
    with (folder / "MANIFEST.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["tool"] == "nstat"]
    for row in rows:
        wanted = json.loads(row["expected"])
        found = values(load(folder / row["path"]))
        assert len(found) == wanted.pop("counters")
        for name, count in wanted.items():
            told = found.get(f"event:{name}")
            assert told == (None if count is None else int(count))
