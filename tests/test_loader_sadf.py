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
        pytest.param("<?xml?>\n<sysstat\n", "not sadf's XML .*cut short", id="xml"),
        pytest.param(
            '<!DOCTYPE sysstat [<!ENTITY a "b">]>\n<sysstat/>\n', "entities", id="bomb"
        ),
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
    refused = {"cap-dh.csv", "cap-g.svg", "cap-r-raw.txt", "sysstat-test-T-tz.txt"}
    for name, found, wanted in corpus(shared, "sys"):
        assert isinstance(found, CaptureError) == (name in refused), name
        if name.endswith("11.6.5-j.json"):
            assert "metric-absent" in codes(found)
        elif name.endswith(".json") and name not in refused:
            ends = {one.end_s for one in found.measurements if one.end_s is not None}
            assert len(ends) == wanted["reports"]


XML = """<?xml version="1.0" encoding="UTF-8"?>
<sysstat xmlns="https://sysstat.github.io">
<host nodename="vm"><sysname>Linux</sysname><release>6.1</release>
<number-of-cpus>2</number-of-cpus><statistics>
<timestamp date="2026-11-30" time="14:17:17" utc="1" interval="2">
<cpu-load><cpu number="all" user="64.00" nice="0.00" system="35.00" iowait="0.00"
 steal="1.00" idle="0.00"/></cpu-load>
<process-and-context-switch per="second" proc="0.00" cswch="100.00"/>
<interrupts><int-global per="second"><irq intr="sum" cpu="all" value="50.00"/>
<irq intr="sum" cpu="0" value="20.00"/></int-global></interrupts>
<paging per="second" pgpgin="0.00"/>
<network per="second"><net-dev iface="lo" rxpck="5.00" txpck="6.00"/>
<net-dev iface="eth0" rxpck="7.00" txpck="8.00"/><net-ip irec="1.00"/></network>
</timestamp></statistics><restarts></restarts></host></sysstat>
"""


def test_xml_gives_what_the_json_of_the_same_data_gives():
    found = read(XML)
    told = {
        (one.metric, tuple(one.labels.values())): one.value
        for one in found.measurements
        if one.start_s is None
    }
    assert told["cpu_busy", ()] == 1.0
    assert told["context_switches", ()] == 200
    assert told["interrupts", ()] == 100
    assert told["packet_rate", ("eth0", "tx")] == 8
    assert found.started_at == "2026-11-30T14:17:15Z"
    assert found.facts["number_of_cpus"] == 2
    assert "not read: net-ip, paging" in [one.text for one in found.caveats]


def test_a_zone_other_than_utc_leaves_the_start_unknown():
    found = read(ROWS.replace(" UTC;", " CET;"))
    assert found.started_at is None
    assert "clock-unknown" in [one.code for one in found.caveats]


def test_a_restart_before_the_first_record_is_no_doubt():
    restart = "vm;-1;2026-11-30 14:17:00 UTC;LINUX-RESTART\t(8 CPU)\n"
    assert "restarted" not in [one.code for one in read(restart + ROWS).caveats]
    assert "restarted" in [one.code for one in read(ROWS + restart).caveats]


def test_a_table_without_a_metric_need_not_be_readable():
    text = ROWS + "# hostname;interval;timestamp;BAT;%cap;status\n"
    text += "vm;1;2026-11-30 14:17:17 UTC;0;100;Full\n"
    caveats = [one.text for one in read(text).caveats]
    assert "not read: BAT" in caveats


def test_pairs_of_a_battery_are_left_out():
    text = (
        "vm\t1\t2026-11-30 14:17:17 UTC\tall\t%idle\t100.00\n"
        "vm\t1\t2026-11-30 14:17:17 UTC\tBAT0\tstatus\tFull\n"
        "vm\t1\t2026-11-30 14:17:17 UTC\tbus3\tmanufact\n"
    )
    assert {one.metric for one in read(text).measurements} == {"cpu_busy"}


def test_a_second_record_of_one_time_does_not_replace_the_first():
    again = "vm;0;2026-11-30 14:00:03 UTC;-1;99,00;0,00;0,00;0,00;0,00;1,00\n"
    assert read(ROWS + again).measurements == read(ROWS).measurements
    pairs = "vm\t{}\t2026-11-30 14:00:02 UTC\t-\tcswch/s\t{}\n"
    capture = read(pairs.format(2, "10.00") + pairs.format(0, "99.00"))
    assert whole(capture, "context_switches") == 20


def test_the_sum_of_interrupts_is_read_where_the_cpus_are_told():
    pairs = "vm\t2\t2026-11-30 14:00:02 UTC\tsum\tall\t841.00\n"
    assert whole(read(pairs), "interrupts") == 1682
    rows = "# hostname;interval;timestamp;INTR;CPU*\n"
    capture = read(rows + "vm;2;2026-11-30 14:00:02 UTC;sum;841.00\n")
    assert not capture.measurements
    assert "tables-unread" in codes(capture)
