"""Tables with a column for every CPU: /proc/interrupts and /proc/softirqs."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import difference, load, proc_interrupts, proc_softirqs
from patchstudy.records import Capture, RawFile

HEADER = "           CPU0       CPU1       \n"


def read(text: str) -> Capture:
    raw = RawFile.of(Path("file"), text.encode())
    assert proc_interrupts.sniff(raw)
    return proc_interrupts.load(raw)


def counts(capture: Capture, irq: str) -> list[float]:
    return [one.value for one in capture.measurements if one.labels.get("irq") == irq]


def total(capture: Capture, metric: str = "interrupts") -> list[float]:
    return [
        one.value
        for one in capture.measurements
        if one.metric == metric and not one.labels
    ]


def expected(shared: Path, tool: str) -> list[tuple[Path, dict]]:
    folder = shared / "corpus/sys"
    with (folder / "MANIFEST.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["tool"] == tool]
    return [(folder / row["path"], json.loads(row["expected"])) for row in rows]


@pytest.mark.parametrize(
    ("row", "name", "wanted", "words"),
    [
        pytest.param(
            " 24:   1   20  IO-APIC   5-edge      ACPI:Ged",
            "24",
            [1, 20],
            "IO-APIC 5-edge ACPI:Ged",
            id="x86",
        ),
        pytest.param(
            " 38:   0  5 PCI-MSIX-0000:00:03.0   1-edge   virtio2-input.0",
            "38",
            [0, 5],
            "PCI-MSIX-0000:00:03.0 1-edge virtio2-input.0",
            id="colons in the chip",
        ),
        pytest.param(
            "  8: 2295312 2295297  MIPS GIC Local   1  timer",
            "8",
            [2295312, 2295297],
            "MIPS GIC Local 1 timer",
            id="chip of several words",
        ),
        pytest.param(
            "IPI5:1832994294  356298973       IRQ work interrupts",
            "IPI5",
            [1832994294, 356298973],
            "IRQ work interrupts",
            id="no blank",
        ),
        pytest.param("I/O:  675   559", "I/O", [675, 559], "", id="s390x"),
    ],
)
def test_a_row_is_its_counts_and_its_words(row, name, wanted, words):
    capture = read(f"{HEADER}{row}\n")
    assert counts(capture, name) == wanted
    assert capture.facts["interrupts"] == {name: words}
    assert total(capture) == [sum(wanted)]


def test_errors_of_the_machine_are_not_interrupts_of_a_cpu():
    capture = read(f"{HEADER}LOC:  5  6  Local timer interrupts\nERR:   3\n")
    assert total(capture) == [11]
    assert total(capture, "event:irq_ERR") == [3]


def test_a_row_without_counts_is_a_fact():
    capture = read(f"{HEADER}FIQ:              usb_fiq\n 3:  1  2  chip\n")
    assert capture.facts["interrupts"]["FIQ"] == "usb_fiq"
    assert total(capture) == [3]


def test_one_cpu_is_read():
    capture = read("           CPU0       \n  7:   42   GIC  eth0\nErr:   0\n")
    assert total(capture) == [42]
    assert total(capture, "event:irq_Err") == [0]


def test_rows_that_contain_others_give_no_sum():
    capture = read(f"{HEADER}EXT:  5  6\nI/O:  7  8\nCLK:  5  6\n")
    assert total(capture) == []
    assert [one.code for one in capture.caveats] == ["total-unknown"]


def test_a_cut_row_is_refused_with_its_line():
    with pytest.raises(CaptureError, match=r"file:3: 'TLB' has 1 counts for 2 CPUs"):
        read(f"{HEADER}  7:   42  1  GIC\nTLB:   42 GIC\n")


def test_a_row_that_is_cut_is_no_count_of_the_machine():
    with pytest.raises(CaptureError, match=r"file:3: 'TLB' has 1 counts for 2 CPUs"):
        read(f"{HEADER}  7:   42  1  GIC\nTLB:   42")


def test_a_row_that_appears_later_is_left_out_of_the_sum():
    before = read(f"{HEADER} 7:   5  6  chip\n")
    after = read(f"{HEADER} 7:   8  6  chip\n 9:   1  0  chip\n")
    delta = difference(before, after)
    assert total(delta) == [3]
    assert [one.code for one in delta.caveats] == ["one-sided"]


def test_a_count_that_wraps_at_32_bits_is_subtracted():
    before = read(f"{HEADER} 7:   4294967290  0  chip\n")
    assert total(difference(before, read(f"{HEADER} 7:   4  0  chip\n"))) == [10]


def test_rows_and_sums_are_those_of_the_corpus(shared):
    for path, wanted in expected(shared, "proc-interrupts"):
        capture = load(path)
        assert len(capture.facts["interrupts"]) == wanted["rows"]
        largest = counts(capture, wanted["largest_row"])
        assert len(largest) == wanted["cpus"]
        assert sum(largest) == wanted["largest_sum"]


def test_a_pair_of_the_corpus_is_subtracted_row_by_row(shared):
    folder = shared / "corpus/sys/proc-interrupts"
    delta = difference(*[load(folder / f"wa-{one}.txt") for one in ("before", "after")])
    assert counts(delta, "IPI1")[0] == 8823 - 8751
    assert sum(counts(delta, "IPI1")) == 33544 - 33333
    assert counts(delta, "160") == []
    assert "one-sided" in {one.code for one in delta.caveats}


def test_softirqs_are_those_of_the_corpus(shared):
    for path, wanted in expected(shared, "proc-softirqs"):
        capture = load(path)
        assert total(capture, "event:softirq_NET_RX") == [wanted["NET_RX"]]
        assert total(capture, "event:softirq_NET_TX") == [wanted["NET_TX"]]
        (largest,) = total(capture, f"event:softirq_{wanted['largest_row']}")
        assert largest == wanted["largest_sum"]
        cpus = {one.labels["cpu"] for one in capture.measurements if one.labels}
        assert len(cpus) == wanted["cpus"]


def test_softirqs_of_one_cpu_are_no_interrupts():
    raw = RawFile.of(
        Path("file"), b"                    CPU0       \n   HI:   3\n  RCU:   4\n"
    )
    assert proc_softirqs.sniff(raw)
    assert not proc_interrupts.sniff(raw)
    assert total(proc_softirqs.load(raw), "softirqs") == [7]


def test_softirqs_without_the_last_kind_have_no_sum():
    raw = RawFile.of(Path("file"), f"{HEADER}  HI:   3  4\n".encode())
    capture = proc_softirqs.load(raw)
    assert total(capture, "softirqs") == []
    assert total(capture, "event:softirq_HI") == [7]
    assert [one.code for one in capture.caveats] == ["cut-short"]


def test_a_cut_row_of_softirqs_is_refused():
    raw = RawFile.of(Path("file"), f"{HEADER}  HI:   3\n".encode())
    with pytest.raises(CaptureError, match=r"file:2: 'HI' has not one count for each"):
        proc_softirqs.load(raw)
