"""vmstat: the first row is since boot, shares are whole percent."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import load, vmstat
from patchstudy.loaders import read as read_raw
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "vmstat"


def golden(name):
    return vmstat.load(read_raw(FILES / name))


def read(text):
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert vmstat.sniff(raw)
    return vmstat.load(raw)


def whole(capture, metric, **labels):
    """Return the value of the whole run with exactly these labels; None for none."""
    found = [
        one.value
        for one in capture.measurements
        if one.metric == metric and one.labels == labels and one.start_s is None
    ]
    assert len(found) <= 1
    return found[0] if found else None


def codes(capture):
    return {one.code for one in capture.caveats}


def corpus(shared, part):
    """Yield the capture or the error of every file of this tool, with its row."""
    folder = shared / "corpus" / part
    with (folder / "MANIFEST.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["tool"] == "vmstat"]
    assert rows
    for row in rows:
        try:
            found = load(folder / row["path"])
        except CaptureError as error:
            found = error
        yield row["path"].partition("/")[2], found, json.loads(row["expected"])


HEAD = """\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
"""
BOOT = (
    " 1  0      0   1000    100    200    0    0     1     2  300  400 10 10 70 10  0\n"
)
ROW = (
    " 1  0      0   1000    100    200    0    0     1     2  500  800 {} {} {} {}  0\n"
)


def test_the_first_row_is_never_in_the_mean():
    capture = read(HEAD + BOOT + ROW.format(40, 20, 30, 10) + ROW.format(20, 20, 60, 0))
    assert whole(capture, "cpu_busy") == pytest.approx(0.5)
    assert whole(capture, "cpu_busy", span="since boot") == pytest.approx(0.2)
    assert whole(capture, "event:cs") == 800


POLISH = """\
proc. -----------pamięć---------- ---swap-- ---we/wy--- -system-- ------cpu-----
dz bl   swap  wolna  bufor  cache   si   so    bi    bo   in   cs uż sy be io sk
"""
KOREAN = """\
procs -----------메모리---------- ---스왑-- ---입출력-- -시스템-- ------CPU-----
 r  b 스왑 가용 버퍼 캐시  입  출   입   출   in   cs us sy id wa st
"""


@pytest.mark.parametrize("head", [POLISH, KOREAN], ids=["Polish", "Korean"])
def test_translated_columns_are_told_by_their_place(head):
    capture = read(head + BOOT + ROW.format(40, 20, 30, 10))
    assert whole(capture, "cpu_busy") == pytest.approx(0.6)
    assert whole(capture, "event:in") == 500


def test_one_row_alone_is_no_run():
    capture = read(HEAD + BOOT)
    assert whole(capture, "cpu_busy") is None
    assert "since-boot" in codes(capture)


def test_times_make_intervals_and_counts():
    capture = golden("cap-t-w.txt")
    assert capture.started_at == "2026-11-30T14:17:25Z"
    assert whole(capture, "context_switches") == 2773
    spans = [(one.start_s, one.end_s) for one in capture.measurements if one.end_s]
    assert spans == [(0, 1)]


def test_without_times_there_are_no_counts():
    capture = golden("cap-1-3.txt")
    assert whole(capture, "context_switches") is None
    assert whole(capture, "event:in") == (3957 + 4575) / 2
    assert "times-absent" in codes(capture)


def test_translated_columns_are_taken_by_their_place():
    capture = golden("cap-de_DE.txt")
    assert whole(capture, "cpu_busy", span="since boot") == pytest.approx(0.82)


def test_a_row_cut_short_is_refused():
    with pytest.raises(CaptureError, match=r"run.txt:3: 16 values under 17 columns"):
        read(HEAD + BOOT.rstrip()[:-2] + "\n")


def test_the_table_of_disks_is_refused():
    text = "disk- ------------reads------------ ------------writes-----------\n"
    with pytest.raises(CaptureError, match="call vmstat without -d"):
        read(text)


def test_the_corpus_gives_its_values(shared):
    for name, found, wanted in corpus(shared, "sys"):
        if name.endswith("vmstat-d.txt"):
            assert isinstance(found, CaptureError)
            continue
        row = [int(one) for one in wanted["first_row"][:17]]
        busy = 1 - (row[14] + row[15]) / 100
        told = whole(found, "cpu_busy", span="since boot")
        assert told == pytest.approx(busy), name
        assert whole(found, "event:cs", span="since boot") == row[11]
        assert found.workload["rows"] == wanted["data_rows"]
