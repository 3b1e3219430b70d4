"""top of procps and BusyBox: the first iteration, commas, cut lines."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import load, top
from patchstudy.loaders import read as read_raw
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "top"


def golden(name):
    return top.load(read_raw(FILES / name))


def read(text):
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert top.sniff(raw)
    return top.load(raw)


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
        rows = [row for row in csv.DictReader(file) if row["tool"] == "top"]
    assert rows
    for row in rows:
        try:
            found = load(folder / row["path"])
        except CaptureError as error:
            found = error
        yield row["path"].partition("/")[2], found, json.loads(row["expected"])


SCREEN = """\
top - {time} up 36 min,  0 user,  load average: 6.65, 11.64, 10.30
Tasks: 109 total,   6 running, 102 sleeping,   0 stopped,   1 zombie
{cpus}
MiB Mem :  24105.6 total,  20177.2 free,   1113.0 used,   3129.1 buff/cache

  PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
    1 root      20   0   51880  20464   6300 S   0.0   0.1   0:47.61 init
"""
IDLE = "%Cpu(s):  0.0 us,  0.0 sy,  0.0 ni,100.0 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st"
BUSY = "%Cpu(s): 50.0 us, 10.0 sy,  0.0 ni, 20.0 id,  5.0 wa,  0.0 hi, 15.0 si,  0.0 st"


def screen(time, cpus):
    return SCREEN.format(time=time, cpus=cpus)


def test_the_first_iteration_is_no_part_of_the_run():
    capture = read(screen("14:00:00", IDLE) + screen("14:00:02", BUSY))
    assert whole(capture, "cpu_busy") == pytest.approx(0.75)
    assert whole(capture, "cpu_softirq") == pytest.approx(0.15)
    assert whole(capture, "cpu_busy", span="first iteration") == 0
    spans = {(one.start_s, one.end_s) for one in capture.measurements if one.end_s}
    assert spans == {(0, 2)}


def test_one_iteration_alone_is_a_doubt():
    capture = read(screen("14:00:00", BUSY))
    assert whole(capture, "cpu_busy") is None
    assert "first-iteration-only" in codes(capture)


def test_decimal_commas_and_translated_heads_are_read():
    capture = golden("cap-de_DE.txt")
    assert whole(capture, "cpu_softirq", span="first iteration") == pytest.approx(0.4)


def test_every_cpu_has_its_own_line():
    cpus = (
        BUSY.replace("(s)", "0 ")
        + "   "
        + BUSY.replace("(s)", "1 ")
        .replace("50.0 us, 10.0 sy", " 0.0 us,  0.0 sy")
        .replace("20.0 id", "80.0 id")
    )
    capture = read(screen("14:00:00", IDLE) + screen("14:00:02", cpus))
    assert whole(capture, "cpu_busy_max") == pytest.approx(0.75)
    assert whole(capture, "cpu_busy") == pytest.approx(0.45)


def test_a_line_that_top_cut_leaves_the_machine_absent():
    capture = golden("cap-percpu.txt")
    assert whole(capture, "cpu_busy", span="first iteration") is None
    assert whole(capture, "cpu_busy", span="first iteration", cpu="0") == 1
    assert "cpus-cut" in codes(capture)


def test_all_iterations_of_busybox_count():
    capture = golden("hand-busybox.txt")
    assert whole(capture, "cpu_busy") == pytest.approx((0.62 + 0.51) / 2)
    assert whole(capture, "cpu_softirq") == pytest.approx(0.295)
    assert capture.facts["process_rows"] == 4


def test_the_form_of_old_procps_is_read():
    old = (
        "Cpu(s): 50.0%us, 10.0%sy,  0.0%ni, 20.0%id,  5.0%wa,  0.0%hi, 15.0%si,  0.0%st"
    )
    capture = read(screen("14:00:00", IDLE) + screen("14:00:02", old))
    assert whole(capture, "cpu_busy") == pytest.approx(0.75)


def test_shares_that_do_not_add_up_are_refused():
    wrong = BUSY.replace("50.0", " 5.0")
    with pytest.raises(CaptureError, match=r"run.txt:3: .* add up to 55.0 %"):
        read(screen("14:00:00", wrong))


def test_the_corpus_gives_its_values(shared):
    for name, found, wanted in corpus(shared, "sys"):
        assert found.workload["iterations"] == wanted["iterations"], name
        assert found.facts["process_rows"] == wanted["process_rows"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("%Cpu(s):", "ut sy ni id wa hi si st", id="French"),
        pytest.param("%CPU:   ", "uż sy ni be io hi si sk", id="Polish"),
        pytest.param("%Cpu/er:", "an sy ni in vä ha ma st", id="Swedish"),
        pytest.param("%CПроц.:", "us sy ni id wa hi si st", id="Ukrainian"),
    ],
)
def test_translated_shares_are_told_by_their_order(name, words):
    shares = ("50,0", "10,0", " 0,0", "20,0", " 5,0", " 0,0", "15,0", " 0,0")
    told = zip(shares, words.split(), strict=True)
    cpus = f"{name} " + ", ".join(f"{share} {word}" for share, word in told)
    capture = read(screen("10:00:00", IDLE) + screen("10:00:02", cpus))
    assert whole(capture, "cpu_busy") == pytest.approx(0.75)
    assert whole(capture, "cpu_softirq") == pytest.approx(0.15)
