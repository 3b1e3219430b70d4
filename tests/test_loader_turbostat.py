"""turbostat: the summary row, several intervals, short rows."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import load, turbostat
from patchstudy.loaders import read as read_raw
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "turbostat"


def golden(name):
    return turbostat.load(read_raw(FILES / name))


def read(text):
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert turbostat.sniff(raw)
    return turbostat.load(raw)


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
        rows = [row for row in csv.DictReader(file) if row["tool"] == "turbostat"]
    assert rows
    for row in rows:
        try:
            found = load(folder / row["path"])
        except CaptureError as error:
            found = error
        yield row["path"].partition("/")[2], found, json.loads(row["expected"])


def test_the_summaries_of_several_intervals_are_averaged():
    capture = golden("hand-two-intervals.txt")
    assert whole(capture, "event:Bzy_MHz") == 2500
    assert whole(capture, "event:PkgWatt") == 36
    assert whole(capture, "event:Busy%", cpu="1") == 3
    assert capture.workload["intervals"] == 2


def test_columns_that_a_short_row_has_not_are_absent():
    capture = golden("hand-two-intervals.txt")
    assert whole(capture, "event:CoreTmp") == 58
    assert {one.labels.get("cpu") for one in capture.measurements} == {None, "0", "1"}


def test_times_make_intervals():
    text = "Time_Of_Day_Seconds\tAvg_MHz\tBusy%\tBzy_MHz\n"
    text += "1796049606.0\t100\t5.00\t2000\n1796049607.0\t300\t10.00\t3000\n"
    capture = read(text)
    assert capture.started_at == "2026-11-30T14:40:05Z"
    assert whole(capture, "event:Bzy_MHz") == 2500
    spans = {(one.start_s, one.end_s) for one in capture.measurements if one.end_s}
    assert spans == {(0, 1), (1, 2)}


def test_a_decimal_comma_is_refused():
    text = (FILES / "hand-two-intervals.txt").read_text().replace("5.00", "5,00", 1)
    with pytest.raises(CaptureError, match=r"run.txt:2: '5,00' under Busy% is not"):
        read(text)


def test_a_head_without_rows_is_refused():
    with pytest.raises(CaptureError, match="summary row is missing; cut short"):
        read("Package\tCore\tCPU\tAvg_MHz\tBusy%\tBzy_MHz\n")


def test_the_corpus_gives_its_values(shared):
    for name, found, wanted in corpus(shared, "sys"):
        for column in ("Bzy_MHz", "Busy%", "PkgWatt"):
            assert whole(found, f"event:{column}") == float(wanted[column]), name
        assert found.facts["columns"] == wanted["columns"]
        assert found.facts["number_of_cpus"] == wanted["rows"] - 1


@pytest.mark.parametrize(
    ("text", "column", "mean"),
    [
        pytest.param("PkgWatt\n12\n14\n", "PkgWatt", 13, id="--show PkgWatt"),
        pytest.param("Busy%\tIRQ\n1\t20\n3\t40\n", "IRQ", 30, id="two columns"),
        pytest.param("CPU\tCPU%c6\n-\t20\n0\t40\n", "CPU%c6", 20, id="no frequency"),
    ],
)
def test_any_columns_of_turbostat_are_read(text, column, mean):
    assert whole(read(text), f"event:{column}") == mean


@pytest.mark.parametrize("text", ["CPU\tIRQ\n-\t20\n", "Busy% is high\n1 2 3\n"])
def test_a_table_without_a_column_of_turbostat_is_not_its(text):
    assert not turbostat.sniff(RawFile.of(Path("run.txt"), text.encode()))
