"""pidstat: columns as events, commands with blanks, averages only where printed."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import load, pidstat
from patchstudy.loaders import read as read_raw
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "pidstat"


def golden(name):
    return pidstat.load(read_raw(FILES / name))


def read(text):
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert pidstat.sniff(raw)
    return pidstat.load(raw)


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
        rows = [row for row in csv.DictReader(file) if row["tool"] == "pidstat"]
    assert rows
    for row in rows:
        try:
            found = load(folder / row["path"])
        except CaptureError as error:
            found = error
        yield row["path"].partition("/")[2], found, json.loads(row["expected"])


BANNER = "Linux 6.1.0 (vm) \t11/30/26 \t_x86_64_\t(2 CPU)\n\n"


HEAD = "UID       PID    %usr %system  %guest   %wait    %CPU   CPU  Command"


def test_a_command_with_blanks_is_one_label():
    capture = golden("cap-comm-spaces.txt")
    labels = {"pid": "4909", "command": "my wrk:1/2 (x)"}
    assert whole(capture, "event:%CPU", **labels) == 28.16


def test_averages_are_the_values_of_the_run_with_twelve_hours():
    capture = golden("cap-en_US-12h.txt")
    assert whole(capture, "event:%CPU", pid="2791", command="iperf3") == 9.36
    ends = {one.end_s for one in capture.measurements}
    assert ends == {None, 1, 2}


def test_a_decimal_comma_is_read():
    capture = golden("cap-de_DE-h.txt")
    assert whole(capture, "event:%system", pid="2791", command="iperf3") == 5.88
    assert "length-unknown" in codes(capture)


def test_without_averages_there_are_intervals_only():
    row = "{time}        0      7    1.00    2.00    0.00    0.00    3.00     1  x\n"
    text = BANNER + f"# Time        {HEAD}\n"
    text += row.format(time="14:00:01") + row.format(time="14:00:02")
    capture = read(text)
    assert whole(capture, "event:%CPU", pid="7", command="x") is None
    assert {one.end_s for one in capture.measurements} == {1, 2}
    assert "averages-absent" in codes(capture)


def test_what_could_not_be_read_is_absent():
    text = BANNER + "14:00:00      UID       PID   kB_rd/s   kB_wr/s  Command\n"
    text += "14:00:01        0      7    -1.00    2.00  x\n"
    capture = read(text)
    assert {one.metric for one in capture.measurements} == {"event:kB_wr/s"}
    assert "no-right" in codes(capture)


def test_a_row_that_is_too_short_is_refused():
    text = BANNER + f"14:00:00      {HEAD}\n14:00:01        0      7    1.00\n"
    with pytest.raises(CaptureError, match=r"run.txt:4: 3 values under 9 columns"):
        read(text)


def test_the_corpus_gives_every_row(shared):
    for name, found, wanted in corpus(shared, "sys"):
        rows = {(one.start_s, tuple(one.labels.items())) for one in found.measurements}
        averages = {row for row in rows if row[0] is None}
        if wanted["average_rows"]:
            assert len(averages) in {1, 4}, name
        assert len(rows) <= wanted["data_rows"], name


@pytest.mark.parametrize("value", ["1844674407370955.00", "99999.99"])
def test_what_no_machine_can_do_is_absent(value):
    head = f"10:00:00      {HEAD}\n"
    row = f"10:00:01  0  7    1.00    0.00    0.00    0.00 {value}     0  nc\n"
    capture = read(BANNER + head + row)
    events = {one.metric for one in capture.measurements}
    assert "event:%usr" in events
    assert "event:%CPU" not in events
    assert "impossible" in codes(capture)
