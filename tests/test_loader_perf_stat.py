"""perf stat: text, fields and JSON lines, in the numbers of several locales."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import load, perf_stat
from patchstudy.records import Capture, RawFile

GOLDEN = Path(__file__).parent / "golden" / "loaders" / "perf_stat"
TITLE = " Performance counter stats for 'iperf3 -c host':\n\n"
ELAPSED = "\n       1.000000123 seconds time elapsed\n"
ROW = "{:>18} {:<4} {:<24}\n"


def read(text: str) -> Capture:
    raw = RawFile.of(Path("file"), text.encode())
    assert perf_stat.sniff(raw)
    return perf_stat.load(raw)


def report(*rows: str, elapsed: str = ELAPSED) -> Capture:
    return read(TITLE + "".join(rows) + elapsed)


def value(capture: Capture, event: str, **labels: str) -> float:
    (found,) = [
        one.value
        for one in capture.measurements
        if one.metric == f"event:{event}"
        and one.labels == labels
        and one.start_s is None
    ]
    return found


def values(capture: Capture) -> dict[str, float]:
    return {
        one.metric.removeprefix("event:"): one.value
        for one in capture.measurements
        if not one.labels and one.start_s is None
    }


def codes(capture: Capture) -> set[str]:
    return {one.code for one in capture.caveats}


def rows() -> list[tuple[str, dict]]:
    path = Path(__file__).parents[2] / "shared/corpus/sys/MANIFEST.csv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8") as file:
        return [
            (row["path"], json.loads(row["expected"]))
            for row in csv.DictReader(file)
            if row["tool"] == "perf-stat"
        ]


def number(text: str) -> float:
    """Read a number of the corpus, by its own rule: a last comma is decimal or not."""
    groups = text.replace("\u202f", "")
    if "," in groups and len(groups.rpartition(",")[2]) == 3:
        return float(groups.replace(",", ""))
    if "." in groups and len(groups.rpartition(".")[2]) == 3 and len(groups) == 5:
        return float(groups.replace(".", ""))
    return float(groups.replace(",", "."))


@pytest.mark.parametrize(("path", "wanted"), rows(), ids=lambda one: str(one)[:40])
def test_counts_are_those_of_the_corpus(shared, path, wanted):
    if "error" in wanted:
        with pytest.raises(CaptureError, match="holds no counter rows"):
            load(shared / "corpus/sys" / path)
        return
    capture = load(shared / "corpus/sys" / path)
    found = {(one.metric, one.value) for one in capture.measurements}
    for event, printed, *_ in wanted.get("values", wanted.get("values_as_printed")):
        name = f"event:{event}"
        if printed.startswith("<"):
            assert name not in {metric for metric, _ in found}
        else:
            assert (name, number(printed)) in found


def test_a_row_of_text_is_a_count_with_its_unit():
    rows = ROW.format("60.76", "msec", "task-clock"), ROW.format("2,105", "", "faults")
    capture = report(*rows)
    assert values(capture) == {"task-clock": 60.76, "faults": 2105}
    assert capture.facts["units"] == {"task-clock": "msec"}
    assert capture.workload == {"duration_s": 1.000000123}
    assert capture.facts["target"] == "'iperf3 -c host'"


@pytest.mark.parametrize(
    ("clock", "count", "elapsed"),
    [
        pytest.param("1,060.76", "12,345", "1.000000123", id="C"),
        pytest.param("1.060,76", "12.345", "1,000000123", id="German"),
        pytest.param("1\u202f060,76", "12\u202f345", "1,000000123", id="French"),
        pytest.param("1 060,76", "12 345", "1,000000123", id="old French"),
        pytest.param("1’060.76", "12’345", "1.000000123", id="Swiss"),
        pytest.param("1060.76", "12345", "1.000000123", id="no groups"),
    ],
)
def test_numbers_of_every_locale_are_the_same(clock, count, elapsed):
    rows = ROW.format(clock, "msec", "task-clock"), ROW.format(count, "", "faults")
    capture = report(*rows, elapsed=f"\n  {elapsed} seconds time elapsed\n")
    assert values(capture) == {"task-clock": 1060.76, "faults": 12345}


def test_a_number_that_can_be_read_in_two_ways_is_refused():
    with pytest.raises(CaptureError, match=r"'2.105' can be read in two ways"):
        report(ROW.format("2.105", "", "page-faults"), elapsed="")


def test_old_perf_has_one_blank_before_the_event():
    rows = (
        "      35623,015084 task-clock (msec)         #    0,995 CPUs utilized\n",
        "             4.982 context-switches          #    0,140 K/sec\n",
        "    94.594.036.631 cycles                    #    2,655 GHz    [32,34%]\n",
        "   <not supported> stalled-cycles-backend\n",
    )
    capture = report(*rows, elapsed="\n  35,811 seconds time elapsed\n")
    assert values(capture) == {
        "task-clock": 35623.015084,
        "context-switches": 4982,
        "cycles": 94594036631,
    }
    assert capture.facts["units"] == {"task-clock": "msec"}


@pytest.mark.parametrize(
    ("line", "event"),
    [
        pytest.param("2106      page-faults", "page-faults", id="plain"),
        pytest.param("37      kmem:kmalloc", "kmem:kmalloc", id="tracepoint"),
        pytest.param("62907331      msr/tsc/", "msr/tsc/", id="slashes"),
        pytest.param(
            "9      cpu_atom/cycles/  (97.1%)", "cpu_atom/cycles/", id="hybrid"
        ),
        pytest.param("8      cycles:u    #  0.05 GHz", "cycles:u", id="modifier"),
        pytest.param("7      L1-dcache-loads [50.00%]", "L1-dcache-loads", id="old"),
        pytest.param("12.34 Joules power/energy-pkg/", "power/energy-pkg/", id="unit"),
        pytest.param(
            "84.254236      task-clock (msec)   # 1", "task-clock", id="perf 4"
        ),
    ],
)
def test_the_name_of_the_event_is_found(line, event):
    (name,) = values(report(f"       {line}\n"))
    assert name == event


def test_shared_counters_are_told_with_the_least_time():
    rows = "   9      cycles     (33.40%)\n", "   8      branches   (16.66%)\n"
    (caveat,) = report(*rows).caveats
    assert caveat.code == "multiplexed"
    assert "branches was counted 16.66 % of the time" in caveat.text


def test_what_was_not_counted_is_absent_and_told():
    rows = "  <not supported>      cycles\n", "  <not counted> msec task-clock\n"
    capture = report(*rows)
    assert capture.measurements == ()
    assert codes(capture) == {"not-supported", "not-counted"}


def test_a_spread_over_runs_is_a_fact():
    capture = load(GOLDEN / "cap-r5.txt")
    assert capture.facts["spread_percent"]["task-clock"] == 5.91
    assert "cpu-migrations" not in capture.facts["spread_percent"]
    assert capture.facts["runs"] == 5
    assert capture.facts["elapsed_s"] == 0.10509
    assert capture.facts["elapsed_spread_s"] == 0.00136


def test_several_reports_are_told_apart():
    capture = load(GOLDEN / "cap-append.txt")
    assert value(capture, "task-clock", report="1") == 16.29
    assert value(capture, "task-clock", report="2") == 14.87
    assert "several-reports" in codes(capture)
    assert capture.workload == {}


def test_the_count_of_all_cpus_is_their_sum():
    capture = load(GOLDEN / "cap-A-percpu.json")
    assert value(capture, "context-switches", cpu="0") == 931
    assert value(capture, "context-switches") == 931 + 108


def test_intervals_add_up_to_the_whole_run():
    capture = load(GOLDEN / "cap-I200-per-core.csv")
    assert value(capture, "context-switches", core="S0-D0-C1") == 93 + 89 + 37
    assert value(capture, "context-switches") == 606 + 573 + 262 + 93 + 89 + 37
    spans = {(one.start_s, one.end_s) for one in capture.measurements if one.end_s}
    assert spans == {
        (0.0, 0.203383618),
        (0.203383618, 0.419957561),
        (0.419957561, 0.517169799),
    }


GERMAN = (
    "#           time             counts unit events\n"
    "     0.500593908           1.003,51 msec cpu-clock      #    2,007 CPUs utilized\n"
    "     0.500593908              1.073      page-faults    #    1,069 K/sec\n"
)


def test_the_point_in_the_time_of_an_interval_is_no_decimal_mark():
    assert values(read(GERMAN)) == {"cpu-clock": 1003.51, "page-faults": 1073}


def test_of_grouped_digits_alone_the_mark_is_known_from_two_groups():
    head, _clock, faults = GERMAN.splitlines(keepends=True)
    faults = faults.partition("#")[0] + "\n"
    with pytest.raises(CaptureError, match=r"'1.073' can be read in two ways"):
        read(head + faults)
    capture = read(head + faults + faults.replace("1.073", "1.234.073"))
    assert value(capture, "page-faults") == 1073


STARTED = "# started on Tue Dec  1 02:49:10 2026\n\n"


@pytest.mark.parametrize(
    "row",
    [
        "{},,page-faults,900,100.00,,\n",
        (
            '{{"counter-value" : "{}.000000", "unit" : "", "event" : "page-faults",'
            ' "event-runtime" : 900, "pcnt-running" : 100.00}}\n'
        ),
    ],
    ids=["fields", "JSON"],
)
def test_reports_of_append_are_told_apart_by_their_first_line(row):
    capture = read(STARTED + row.format(5) + STARTED + row.format(7))
    assert value(capture, "page-faults", report="1") == 5
    assert value(capture, "page-faults", report="2") == 7


def test_what_a_program_printed_above_is_left_out():
    row = "5,,page-faults,900,100.00,,\n7,,faults,900,100.00,,\n"
    assert values(read("sleep: Terminated\n" + row)) == {"page-faults": 5, "faults": 7}
    json_row = '{"counter-value" : "5.0", "unit" : "", "event" : "page-faults"}\n'
    assert values(read("sleep: Terminated\n" + json_row)) == {"page-faults": 5}


def test_an_event_that_was_not_counted_in_one_interval_has_no_sum():
    first = "  1.000000001,5,,cycles,9,100.00,,\n"
    capture = read(f"{first}  2.000000001,<not counted>,,cycles,0,0.00,,\n")
    assert values(capture) == {}
    assert [one.value for one in capture.measurements] == [5]


INTERVAL = "#           time             counts unit events\n"
SUMMARIES = {
    "fields": "  1.000000001,5,,cycles,9,100.00,,\n  summary,6,,cycles,9,100.00,,\n",
    "text": f"{INTERVAL}  1.000000001   5      cycles\n\n"
    f"{TITLE}   6      cycles\n{ELAPSED}",
    "JSON": '{"interval" : 1.000000001, "counter-value" : "5.0", "event" : "cycles"}\n'
    '{"counter-value" : "6.0", "event" : "cycles"}\n',
}


@pytest.mark.parametrize("form", SUMMARIES)
def test_a_summary_below_intervals_is_the_whole_run(form):
    capture = read(SUMMARIES[form])
    assert values(capture) == {"cycles": 6}
    assert [one.value for one in capture.measurements if one.end_s] == [5]
    assert codes(capture) == set()


@pytest.mark.parametrize(
    ("row", "labels", "count"),
    [
        pytest.param("5,,cycles,9,100.00,,", {}, 5, id="plain"),
        pytest.param("5,,cycles,2.91%,9,100.00,,", {}, 5, id="spread"),
        pytest.param("CPU3,5,,cycles,9,100.00,,", {"cpu": "3"}, 5, id="cpu"),
        pytest.param("S0,2,5,,cycles,9,100.00,,", {"socket": "S0"}, 5, id="socket"),
        pytest.param("5;;cycles;9;100.00;;", {}, 5, id="semicolon"),
        pytest.param("5;;cycles;9;100,00;0,042;GHz", {}, 5, id="German semicolon"),
        pytest.param("5,,cycles,9,100,00,0,042,GHz", {}, 5, id="German comma"),
        pytest.param("5,,cycles,web,9,100.00,,", {"cgroup": "web"}, 5, id="cgroup"),
    ],
)
def test_the_fields_are_found_from_the_event(row, labels, count):
    capture = read(f"# started on Mon Nov 30 13:54:20 2026\n\n{row}\n")
    assert value(capture, "cycles", **labels) == count


def test_an_interval_that_is_cut_is_told():
    first = "  1.000000001,5,,cycles,9,100.00,,\n  1.000000001,5,,faults,9,100.00,,\n"
    capture = read(f"{first}  2.000000001,7,,cycles,9,100.00,,\n")
    assert codes(capture) == {"cut-short"}


def test_a_report_without_its_end_is_told():
    assert "cut-short" in codes(report(ROW.format("5", "", "cycles"), elapsed=""))


def test_an_event_may_hold_the_separator():
    capture = read("5,,cpu/event=0x3c,umask=0x1/,9,100.00,,\n")
    assert values(capture) == {"cpu/event=0x3c,umask=0x1/": 5}


def test_a_further_metric_of_a_row_is_no_row():
    capture = read("5,,cycles,9,100.00,1.2,GHz\n,,,,,0.58,insn per cycle\n")
    assert values(capture) == {"cycles": 5}
    assert codes(capture) == set()


@pytest.mark.parametrize(
    "row",
    [
        pytest.param("26.08,msec,task-clock,26080089,100.00,0.9,CPUs utilized", id="C"),
        pytest.param("26,08,msec,task-clock,26080089,100,00,0,CPUs utilized", id="de"),
        pytest.param("26080000,,task-clock,26080089,100.00,0.9,CPUs", id="perf 6.17"),
        pytest.param("26.080000,,task-clock,26080089,100.00,0.9,CPUs", id="perf 4"),
    ],
)
def test_a_clock_is_in_milliseconds_in_every_version_and_locale(row):
    capture = read(row + "\n")
    assert values(capture) == {"task-clock": pytest.approx(26.08)}
    assert capture.facts["units"] == {"task-clock": "msec"}


def test_decimals_that_cannot_be_told_from_a_field_are_refused():
    with pytest.raises(CaptureError, match="cannot be told from another field"):
        read("12,34,Bytes,uncore/bytes/,26080089,100,00,,\n")


def test_energy_in_a_german_locale_is_read():
    capture = read("12,34,Joules,power/energy-pkg/,26080089,100,00,,\n")
    assert values(capture) == {"power/energy-pkg/": 12.34}


def test_a_clock_that_contradicts_its_run_time_is_refused():
    with pytest.raises(CaptureError, match=r"26.08 msec is not the run time"):
        read("26,08,msec,task-clock,99080089,100,00,0,CPUs utilized\n")


def test_german_json_is_read_though_it_is_none():
    line = '{"counter-value" : "26,080089", "unit" : "msec", "event" : "task-clock",'
    line += ' "event-runtime" : 26080089, "pcnt-running" : 100,00}\n'
    assert values(read(line)) == {"task-clock": 26.080089}


def test_a_cut_json_line_is_refused_with_its_number():
    line = '{"counter-value" : "5.0", "unit" : "", "event" : "cycles"}\n'
    with pytest.raises(CaptureError, match=r"file:2: not a JSON line"):
        read(line + line[:40])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("# started on Mon Nov 30 13:54:30 2026\n", "nothing", id="no row"),
        pytest.param(
            "Workload failed: No such file\n", "Workload failed", id="command"
        ),
        pytest.param("event syntax error: 'no:such'\n", "event syntax", id="event"),
        pytest.param(TITLE + ELAPSED, "Performance counter", id="metrics only"),
    ],
)
def test_a_file_without_counts_is_refused_and_says_what_it_holds(text, told):
    with pytest.raises(CaptureError, match=f"holds no counter rows, .*{told}"):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("87380 16384 16384 10.00 941.42\n", id="netperf"),
        pytest.param("1,2,3,4,5\n", id="numbers"),
        pytest.param('{"event": "cycles"}\n', id="another JSON"),
    ],
)
def test_what_is_not_perf_stat(text):
    assert not perf_stat.sniff(RawFile.of(Path("file"), text.encode()))
