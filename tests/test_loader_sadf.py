"""sadf: JSON, database rows and pairs; what is no table is refused."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import load, sadf
from patchstudy.loaders import read as read_raw
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "sadf"


def golden(name):
    return sadf.load(read_raw(FILES / name))


def read(text):
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert sadf.sniff(raw)
    return sadf.load(raw)


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
        rows = [row for row in csv.DictReader(file) if row["tool"] == "sadf"]
    assert rows
    for row in rows:
        try:
            found = load(folder / row["path"])
        except CaptureError as error:
            found = error
        yield row["path"].partition("/")[2], found, json.loads(row["expected"])


ROWS = """\
# hostname;interval;timestamp;CPU;%user;%nice;%system;%iowait;%steal;%idle
vm;1;2026-11-30 14:00:01 UTC;-1;50,00;0,00;20,00;10,00;0,00;20,00
vm;2;2026-11-30 14:00:03 UTC;-1;20,00;0,00;20,00;10,00;0,00;50,00
"""


def test_rows_are_weighted_with_their_interval():
    capture = read(ROWS)
    assert whole(capture, "cpu_busy") == pytest.approx((0.7 + 2 * 0.4) / 3)
    assert capture.started_at == "2026-11-30T14:00:00Z"
    assert capture.workload["duration_s"] == 3


def test_local_times_tell_no_start():
    capture = read(ROWS.replace(" UTC", ""))
    assert capture.started_at is None
    assert "clock-unknown" in codes(capture)


def test_the_three_forms_of_one_file_agree():
    json_form = golden("cap-u-nDEV.json")
    rows, pairs = golden("cap-de_DE-d.csv"), golden("cap-p-u.tsv")
    rx = {"interface": "hr0", "direction": "rx"}
    assert whole(json_form, "packet_rate", **rx) == pytest.approx(10418.43)
    assert whole(rows, "packet_rate", **rx) == pytest.approx(10418.43)
    assert whole(json_form, "cpu_busy") == whole(pairs, "cpu_busy")
    assert whole(pairs, "cpu_busy", cpu="1") is not None


def test_counts_of_the_json_are_rates_times_the_interval():
    document = json.loads((FILES / "cap-u-nDEV.json").read_text())
    for record in document["sysstat"]["hosts"][0]["statistics"]:
        record["process-and-context-switch"] = {"proc": 1.0, "cswch": 250.0}
    capture = read(json.dumps(document, indent=1))
    assert whole(capture, "context_switches") == 1000


def test_tables_that_are_not_read_are_named():
    document = json.loads((FILES / "cap-u-nDEV.json").read_text())
    document["sysstat"]["hosts"][0]["statistics"][0]["memory"] = {"memfree": 1}
    (caveat,) = [
        one
        for one in read(json.dumps(document, indent=1)).caveats
        if one.code == "tables-unread"
    ]
    assert caveat.text == "not read: memory"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("<?xml?>\n<sysstat\n", "XML is not read; call sadf -j", id="xml"),
        pytest.param(
            ROWS.replace("%idle", "%idle[...]"), "call sadf -d without -h", id="-h"
        ),
        pytest.param(
            "14:17:17 UTC; CPU; -1; %user; 192965; 193093;\n", "raw counters", id="-r"
        ),
    ],
)
def test_a_form_that_is_no_table_is_refused(text, problem):
    with pytest.raises(CaptureError, match=problem):
        read(text)


def test_a_row_with_fewer_fields_is_refused():
    with pytest.raises(CaptureError, match=r"run.txt:3: 6 fields under 10 columns"):
        read(ROWS[: ROWS.rindex(";0,00")].rpartition(";")[0].rpartition(";")[0])


def test_the_corpus_gives_its_values_or_says_what_it_is(shared):
    refused = {"cap-dh.csv", "cap-g.svg", "cap-r-raw.txt", "cap-x-u.xml"}
    refused |= {"sysstat-test-11.6.5-j.json", "sysstat-test-T-tz.txt"}
    for name, found, wanted in corpus(shared, "sys"):
        assert isinstance(found, CaptureError) == (name in refused), name
        if name.endswith(".json") and name not in refused:
            ends = {one.end_s for one in found.measurements if one.end_s is not None}
            assert len(ends) == wanted["reports"]
