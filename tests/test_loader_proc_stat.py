"""/proc/stat: ticks, totals, and the shares of CPU time between two readings."""

from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import difference, load, proc_stat
from patchstudy.records import Capture, RawFile

GOLDEN = Path(__file__).parent / "golden" / "loaders" / "proc_stat"


def read(text: str) -> Capture:
    raw = RawFile.of(Path("file"), text.encode())
    assert proc_stat.sniff(raw)
    return proc_stat.load(raw)


def value(capture: Capture, metric: str, **labels: str) -> float:
    (found,) = [
        one.value
        for one in capture.measurements
        if one.metric == metric and one.labels == labels
    ]
    return found


def metrics(capture: Capture) -> set[str]:
    return {one.metric for one in capture.measurements}


def codes(capture: Capture) -> list[str]:
    return [one.code for one in capture.caveats]


def snapshot(*cpus: str) -> Capture:
    rows = [f"cpu{'' if cpu else ' '}{cpu}" for cpu in cpus]
    return read("\n".join(rows) + "\nctxt 5\n")


# user nice system idle iowait irq softirq steal
BEFORE = ("  100 0 0 1000 10 0 0 0", "0 50 0 0 500 5 0 0 0", "1 50 0 0 500 5 0 0 0")


def pair(*after: str) -> Capture:
    return difference(snapshot(*BEFORE), snapshot(*after))


def after(all_cpus: str, cpu0: str, cpu1: str) -> Capture:
    return pair(f"  {all_cpus}", f"0 {cpu0}", f"1 {cpu1}")


def test_all_but_idle_and_iowait_is_busy():
    delta = after(
        "150 0 0 1100 20 0 40 0", "90 0 0 500 5 0 30 0", "60 0 0 600 15 0 10 0"
    )
    assert value(delta, "cpu_busy") == pytest.approx(90 / 200)
    assert value(delta, "cpu_busy", cpu="0") == 1
    assert value(delta, "cpu_busy_max") == 1
    assert value(delta, "cpu_softirq") == pytest.approx(40 / 200)
    assert delta.facts["busiest_cpu"] == "0"
    assert codes(delta) == []


def test_guest_time_is_not_counted_twice():
    capture = read("cpu  201390 14131 97729 79711 842 0 50436 4110 5 0\n")
    assert value(capture, "event:cpu_time") == 448349


@pytest.mark.parametrize(
    ("columns", "time", "softirq"),
    [
        pytest.param("1 2 3 4", 10, False, id="before 2.6"),
        pytest.param("1 2 3 4 5 6 7", 28, True, id="seven columns"),
        pytest.param("1 2 3 4 5 6 7 8 9 10", 36, True, id="ten columns"),
    ],
)
def test_rows_of_old_kernels_are_read(columns, time, softirq):
    capture = read(f"cpu  {columns}\ncpu0 {columns}\n")
    assert value(capture, "event:cpu_time", cpu="0") == time
    assert ("event:cpu_softirq" in metrics(capture)) is softirq
    assert capture.facts["number_of_cpus"] == 1


def test_iowait_that_falls_is_no_reset():
    delta = after("150 0 0 1060 0 0 0 0", "100 0 0 500 5 0 0 0", "50 0 0 560 0 0 0 0")
    assert value(delta, "cpu_busy") == pytest.approx(50 / 100)
    assert codes(delta) == []


def test_time_that_the_hypervisor_took_is_busy_and_told():
    delta = after("140 0 0 1050 10 0 0 10", "70 0 0 525 5 0 0 5", "70 0 0 525 5 0 0 5")
    assert value(delta, "cpu_busy") == pytest.approx(50 / 100)
    assert codes(delta) == ["steal"]


def test_time_that_goes_backwards_gives_no_share():
    delta = after("38 0 0 100 0 0 0 0", "19 0 0 50 0 0 0 0", "19 0 0 50 0 0 0 0")
    assert not any(name.startswith("cpu_") for name in metrics(delta))
    assert {"reset", "cpu-time-unknown"} <= set(codes(delta))


def test_two_equal_readings_give_no_share():
    delta = difference(snapshot(*BEFORE), snapshot(*BEFORE))
    assert "cpu_busy" not in metrics(delta)
    assert "cpu-time-unknown" in codes(delta)


def test_a_cpu_that_went_away_is_told():
    delta = pair("  150 0 0 1050 10 0 0 0", "0 75 0 0 525 5 0 0 0")
    assert value(delta, "cpu_busy") == pytest.approx(50 / 100)
    assert value(delta, "cpu_busy_max") == pytest.approx(25 / 50)
    assert "cpus-changed" in codes(delta)


def test_a_share_has_the_resolution_of_one_tick():
    delta = after(
        "150 0 0 1100 20 0 40 0", "90 0 0 500 5 0 30 0", "60 0 0 600 15 0 10 0"
    )
    (busy,) = [
        one for one in delta.measurements if one.metric == "cpu_busy" and not one.labels
    ]
    assert busy.resolution == pytest.approx(1 / 200)


def test_interrupts_and_switches_are_totals():
    text = "cpu  1 2 3 4\nintr 70 1 2\nctxt 80\nprocs_running 3\nsoftirq 90 4 5\n"
    capture = read(text)
    assert value(capture, "interrupts") == 70
    assert value(capture, "context_switches") == 80
    assert value(capture, "softirqs") == 90
    assert value(capture, "event:procs_running", kind="gauge") == 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "cpu  1 2 3 4\ncpu0 1 2\n", "file:2: 'cpu0 1 2' is not a CPU", id="cut"
        ),
        pytest.param(
            "cpu  1 2 3 4\nctxt\n", "file:2: 'ctxt' has no number", id="no number"
        ),
        pytest.param(
            "cpu  1 2 3 4\ncpu  1 2 3 4\n", "file:2: 'cpu' stands twice", id="two"
        ),
    ],
)
def test_a_broken_row_is_refused_with_its_line(text, problem):
    with pytest.raises(CaptureError, match=problem):
        read(text)


def test_a_process_that_spun_for_two_seconds_is_seen():
    files = [load(GOLDEN / f"own-pair.{when}.txt") for when in ("before", "after")]
    delta = difference(*files)
    user = value(delta, "event:cpu_user")
    assert 150 <= user <= 2 * value(delta, "event:cpu_time")
    assert value(delta, "cpu_busy_max") >= value(delta, "cpu_busy") > 0.4


def test_ticks_are_those_of_the_corpus(manifest):
    for path, wanted in manifest("proc-stat"):
        capture = load(path)
        assert capture.facts["number_of_cpus"] == wanted["cpus"]
        assert capture.facts["fields"] == wanted["fields"]
        assert value(capture, "event:cpu_time") == wanted["cpu_total"]
        assert value(capture, "context_switches") == wanted["ctxt"]


@pytest.fixture
def manifest(shared):
    import csv
    import json

    folder = shared / "corpus" / "sys"
    with (folder / "MANIFEST.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))

    def of(tool: str) -> list[tuple[Path, dict]]:
        found = [
            (folder / row["path"], json.loads(row["expected"]))
            for row in rows
            if row["tool"] == tool
        ]
        assert found
        return found

    return of


def test_a_cpu_that_went_away_in_the_corpus_is_told(shared):
    folder = shared / "corpus/sys/proc-stat"
    pair = [load(folder / f"telegraf-hotplug-{number}.txt") for number in (0, 1)]
    assert "cpus-changed" in codes(difference(*pair))
