"""sar's text: averages of the tool, either clock, counts from rates."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import load, sar
from patchstudy.loaders import read as read_raw
from patchstudy.records import RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "sar"


def golden(name):
    return sar.load(read_raw(FILES / name))


def read(text):
    raw = RawFile.of(Path("run.txt"), text.encode())
    assert sar.sniff(raw)
    return sar.load(raw)


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
        rows = [row for row in csv.DictReader(file) if row["tool"] == "sar"]
    assert rows
    for row in rows:
        try:
            found = load(folder / row["path"])
        except CaptureError as error:
            found = error
        yield row["path"].partition("/")[2], found, json.loads(row["expected"])


BANNER = "Linux 6.1.0 (vm) \t11/30/26 \t_x86_64_\t(2 CPU)\n\n"


SHARES = "CPU     %user     %nice   %system   %iowait    %steal     %idle"


def test_the_average_of_sar_is_the_value_of_the_run():
    text = BANNER + f"14:00:00   {SHARES}\n"
    text += "14:00:01   all  50.00  0.00  20.00  10.00  0.00  20.00\n"
    text += "14:00:03   all  10.00  0.00  20.00  10.00  0.00  60.00\n"
    text += "Average:   all  23.33  0.00  20.00  10.00  0.00  46.67\n"
    capture = read(text)
    assert whole(capture, "cpu_busy") == pytest.approx(0.4333)
    spans = [(one.start_s, one.end_s) for one in capture.measurements if one.end_s]
    assert spans == [(0, 1), (1, 3)]
    assert "softirq-absent" in codes(capture)


def test_without_an_average_means_are_weighted_by_time():
    text = BANNER + f"14:00:00   {SHARES}\n"
    text += "14:00:01   all  40.00  0.00  20.00  10.00  0.00  30.00\n"
    text += "14:00:03   all  10.00  0.00  20.00  10.00  0.00  60.00\n"
    capture = read(text)
    assert whole(capture, "cpu_busy") == pytest.approx(0.4)
    assert "cut-short" in codes(capture)


def test_packets_and_drops_of_an_interface_are_read_with_twelve_hours():
    capture = golden("cap-en_US-n-DEV-EDEV.txt")
    rx = {"interface": "hr0", "direction": "rx"}
    assert whole(capture, "packet_rate", **rx) == 10387.5
    (drops,) = [
        one
        for one in capture.measurements
        if one.metric == "drops" and one.labels == rx
    ]
    assert (drops.value, drops.exposure) == (0, 2 * 10387.5)
    assert whole(capture, "event:rxkB/s", interface="hr0") == 6512.19


def test_all_shares_tell_the_softirqs():
    capture = golden("cap-u-ALL.txt")
    assert whole(capture, "cpu_softirq") == 0.135
    assert capture.facts["number_of_cpus"] == 2


def test_switches_are_the_rate_times_the_seconds():
    text = BANNER + "14:00:00       proc/s   cswch/s\n14:00:02  1.00  500.00\n"
    text += "Average:  1.00  500.00\n"
    capture = read(text)
    assert whole(capture, "context_switches") == 1000
    assert "count-from-rate" in codes(capture)


def test_a_decimal_comma_is_a_comma_and_never_a_thousand():
    text = BANNER + f"14:00:00   {SHARES}\n"
    text += "14:00:01   all  40,12  0,00  20,00  9,88  0,00  30,00\n"
    assert whole(read(text), "cpu_busy") == pytest.approx(0.6012)


def test_a_number_with_three_decimals_is_refused():
    text = BANNER + f"14:00:00   {SHARES}\n14:00:01   all  40,123 0 0 0 0 0\n"
    with pytest.raises(CaptureError, match=r"run.txt:4: '40,123' is not a number"):
        read(text)


def test_shares_that_do_not_add_up_are_refused():
    text = BANNER + f"14:00:00   {SHARES}\n"
    text += "14:00:01   all  40.00  0.00  20.00  9.88  0.00  3.00\n"
    with pytest.raises(CaptureError, match=r"add up to 72.9 %, not to 100 %"):
        read(text)


def test_a_restart_within_the_file_is_a_doubt():
    text = BANNER + f"14:00:00   {SHARES}\n"
    text += "14:00:01   all  40.00  0.00  20.00  10.00  0.00  30.00\n"
    text += "14:00:02       LINUX RESTART\t(2 CPU)\n"
    assert "restarted" in codes(read(text))


def test_the_corpus_gives_its_values(shared):
    for name, found, wanted in corpus(shared, "sys"):
        for interface, rates in wanted.get("average", {}).items():
            for way in ("rx", "tx"):
                labels = {"interface": interface, "direction": way}
                rate = whole(found, "packet_rate", **labels)
                assert rate == rates[f"{way}pck/s"], name
        assert found.measurements


INTERRUPTS = """\
10:00:00         INTR       all      CPU0      CPU1
10:00:02          sum    100.00     60.00     40.00
10:00:02            8      0.00      0.00      0.00

10:00:02         INTR       all      CPU0
10:00:04          sum     50.00     50.00

Average:         INTR       all      CPU0      CPU1
Average:          sum     75.00     55.00
"""


def test_interrupts_are_those_of_all_cpus_also_when_cpus_come_and_go():
    capture = read(BANNER + INTERRUPTS)
    assert whole(capture, "interrupts") == 75 * 4


def test_interrupts_of_some_cpus_are_not_all():
    text = "10:00:00     CPU3 INTR\n10:00:02    10.00 sum\nAverage:    10.00 sum\n"
    assert whole(read(BANNER + text), "interrupts") is None


@pytest.mark.parametrize(
    "table",
    [
        "10:00:00 fch_rxf/s fch_txf/s FCHOST\n10:00:02 0.00 0.00 host0\n",
        "10:00:00 BAT %cap status\n10:00:02 0 100.00 Full\n",
        "10:00:00 BUS idvendor manufact product\n10:00:02 1 3f0 HP HP Mouse Kit\n",
        "10:00:00 tps rkB/s DEV\n10:00:02 0.00 0.00 sda\n",
        "10:00:01     COM a comment: 7 words, of which none is a row\n",
    ],
    ids=["name last", "word", "blanks", "device last", "comment"],
)
def test_other_tables_do_not_spoil_a_file(table):
    shares = SHARES.replace("CPU", "10:00:00 CPU", 1) + "\n"
    shares += "10:00:02 all 1.00 0.00 2.00 0.00 0.00 97.00\n"
    capture = read(BANNER + shares + "\n" + table)
    assert whole(capture, "cpu_busy") == 0.03


@pytest.mark.parametrize("word", ["Minimum:", "Mínimo:", "Maximum:", "最大:"])
def test_the_extremes_of_a_run_are_no_averages(word):
    head = SHARES.replace("CPU", "10:00:00  CPU", 1) + "\n"
    row = "{} all {} 0.00 0.00 0.00 0.00 {}\n"
    text = head + row.format("10:00:02", "20.00", "80.00")
    text += "\n" + row.format(word, "90.00", "10.00")
    capture = read(BANNER + text + row.format("Average:", "20.00", "80.00"))
    assert whole(capture, "cpu_busy") == pytest.approx(0.2)


def test_after_a_restart_the_averages_of_one_boot_are_not_those_of_the_file():
    head = SHARES.replace("CPU", "10:00:00 CPU", 1) + "\n"
    row = "{} all {} 0.00 0.00 0.00 0.00 {}\n"
    text = (
        head
        + row.format("10:00:10", "20.00", "80.00")
        + row.format("Average:", "20.00", "80.00")
        + "\n12:00:00     LINUX RESTART\t(2 CPU)\n\n"
        + head.replace("10:00:00", "12:00:05")
        + row.format("12:00:35", "40.00", "60.00")
        + row.format("Average:", "40.00", "60.00")
    )
    capture = read(BANNER + text)
    assert whole(capture, "cpu_busy") == pytest.approx(0.35)
    assert capture.workload["duration_s"] == 40
    assert "restarted" in codes(capture)


def test_numbers_for_people_are_absent_and_shares_have_one_decimal():
    text = (
        SHARES.replace("CPU", "10:00:00 CPU", 1)
        + "\n10:00:02 all 1.0% 0.0% 2.0% 0.0% 0.0% 97.1%\n\n"
        + "10:00:00 IFACE rxpck/s txpck/s rxkB/s\n10:00:02 eth0 7.00 8.00 1.2M\n"
    )
    capture = read(BANNER + text)
    assert whole(capture, "packet_rate", interface="eth0", direction="rx") == 7
    assert "event:rxkB/s" not in {one.metric for one in capture.measurements}
    assert "human" in codes(capture)
