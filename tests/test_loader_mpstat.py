import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import load, mpstat, mpstat_plain
from patchstudy.loaders import read as read_raw
from patchstudy.records import Capture, Measurement, RawFile

FILES = Path(__file__).parent / "golden" / "loaders" / "mpstat"
ROWS = ["usr", "nice", "sys", "iowait", "irq"]
ROWS += ["soft", "steal", "guest", "gnice", "idle"]


def cpu(name: str, **percent: float) -> dict:
    busy = {"usr": 0.0, **percent}
    shares = {key: busy.get(key, 0.0) for key in ROWS}
    return {"cpu": name, **shares, "idle": 100 - sum(busy.values())}


def output(*records: tuple[str, list[dict]], cpus: int = 2) -> str:
    statistics = [{"timestamp": time, "cpu-load": rows} for time, rows in records]
    host = {"nodename": "(none)", "release": "6.1.0", "number-of-cpus": cpus}
    host |= {"date": "11/30/26", "statistics": statistics}
    return json.dumps({"sysstat": {"hosts": [host]}}, indent=1)


def read(text: str) -> Capture:
    raw = RawFile.of(Path("tcp.mpstat.json"), text.encode())
    assert mpstat.sniff(raw)
    return mpstat.load(raw)


def golden_text(name: str) -> Capture:
    return mpstat.load(read_raw(FILES / name))


def whole(capture: Capture, metric: str, **labels: str) -> float:
    (found,) = [
        one.value
        for one in capture.measurements
        if one.metric == metric and one.labels == labels and one.start_s is None
    ]
    return found


def codes(capture: Capture) -> set[str]:
    return {one.code for one in capture.caveats}


def test_all_but_idle_and_iowait_is_busy():
    rows = [cpu("all", usr=10.0, sys=5.0, iowait=20.0, soft=2.5, steal=1.0)]
    capture = read(output(("10:00:01", rows), ("10:00:02", rows)))
    assert whole(capture, "cpu_busy") == 0.185
    assert whole(capture, "cpu_softirq") == 0.025


def test_the_mean_weighs_records_with_their_length():
    half, full = [cpu("all", sys=50.0)], [cpu("all", sys=100.0)]
    times = ["23:59:58", "23:59:59", "00:00:02"]
    capture = read(output(*zip(times, [half, half, full], strict=True)))
    assert whole(capture, "cpu_busy") == 0.8
    busy = [one for one in capture.measurements if one.metric == "cpu_busy"]
    ends = [(one.start_s, one.end_s) for one in busy if one.start_s is not None]
    assert ends == [(0.0, 1.0), (1.0, 2.0), (2.0, 5.0)]


def test_records_that_share_a_second_are_equally_long():
    rows = [cpu("all", sys=50.0)]
    times = ["10:00:01", "10:00:01", "10:00:02"]
    capture = read(output(*((time, rows) for time in times)))
    ends = {one.end_s for one in capture.measurements if one.end_s is not None}
    assert ends == {0.5, 1.0, 1.5}


def test_twelve_hours_are_read_across_noon():
    rows = [cpu("all", sys=50.0)]
    capture = read(output(("11:59:59 AM", rows), ("12:00:01 PM", rows)))
    assert {one.end_s for one in capture.measurements} == {None, 2.0, 4.0}


def test_the_busiest_cpu_is_that_of_the_whole_run():
    first = [cpu("all", sys=55.0), cpu("0", sys=90.0), cpu("1", sys=20.0)]
    second = [cpu("all", sys=60.0), cpu("0", sys=20.0), cpu("1", sys=100.0)]
    capture = read(output(("10:00:01", first), ("10:00:02", second)))
    assert whole(capture, "cpu_busy_max") == 0.6
    assert whole(capture, "cpu_busy", cpu="0") == 0.55
    assert capture.facts["busiest_cpu"] == "1"
    assert capture.facts["number_of_cpus"] == 2
    assert "nodename" not in capture.facts


def test_a_cpu_that_is_offline_is_not_busy():
    away = {"cpu": "1", **dict.fromkeys(ROWS, 0.0)}
    rows = [cpu("all", sys=5.0), cpu("0", sys=10.0), away]
    capture = read(output(("10:00:01", rows), ("10:00:02", rows)))
    assert whole(capture, "cpu_busy_max") == 0.1
    assert "cpus-missing" in codes(capture)


def test_one_record_is_taken_as_one_second_with_a_caveat():
    capture = read(output(("10:00:01", [cpu("all", sys=5.0)])))
    assert {one.end_s for one in capture.measurements} == {None, 1.0}
    assert {"length-unknown", "clock-unknown"} <= codes(capture)
    assert capture.started_at is None


def test_time_taken_by_the_hypervisor_is_told():
    rows = [cpu("all", sys=5.0, steal=12.0)]
    capture = read(output(("10:00:01", rows), ("10:00:02", rows)))
    assert "the hypervisor took 12.0% of the CPU time" in capture.caveats[1].text


def test_a_share_that_is_no_number_is_refused_with_its_place():
    text = output(("10:00:01", [{"cpu": "all", "usr": "1,0"}]))
    with pytest.raises(CaptureError, match=r"statistics\[0\].cpu-load\[0\].usr: '1,0'"):
        read(text)


def test_two_outputs_in_one_file_are_refused():
    text = output(("10:00:01", [cpu("all", sys=5.0)]))
    with pytest.raises(CaptureError, match="output of two calls"):
        read(text * 2)


def test_a_file_cut_in_its_header_is_refused():
    with pytest.raises(CaptureError, match=r"tcp.mpstat.json:3: not JSON"):
        mpstat.load(
            RawFile.of(Path("tcp.mpstat.json"), b'{"sysstat": {\n"hosts": [\n{')
        )


BANNER = "Linux 6.1.0 (vm) \t30.11.2026 \t_x86_64_\t(2 CPU)\n\n"
COLUMNS = "CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal   %idle\n"


@pytest.mark.parametrize(
    ("start", "end", "average"),
    [
        pytest.param("14:16:35", "14:16:37", "Durchschn.:", id="German"),
        pytest.param("11:59:59 AM", "12:00:01 PM", "Average:", id="12 hours, noon"),
        pytest.param("23:59:59", "00:00:01", "Moyenne :", id="two words, midnight"),
        pytest.param("14時16分41秒", "14時16分43秒", "平均値:", id="Japanese"),
        pytest.param("14시 16분 41초", "14시 16분 43초", "평균값:", id="Korean"),
        pytest.param("14時16分41秒", "14時16分43秒", "平均時間：", id="Taiwanese"),
        pytest.param(" 9:59:59", "10:00:01", "Average:", id="Bulgarian"),
        pytest.param("11:59:59 AM IST", "12:00:01 PM IST", "Average:", id="Indian"),
        pytest.param("UTC 11:59:59 ص", "UTC 12:00:01 م", "Average:", id="Arabic"),
        pytest.param("上午 11時59分59秒", "下午 12時00分01秒", "平均:", id="12 hours"),
        pytest.param("۰۲:۴۹:۵۴", "۰۲:۴۹:۵۶", "Average:", id="Persian digits"),
    ],
)
def test_the_text_is_read_in_every_locale(start, end, average):
    shares = "all   40,96    0,00   15,34   10,00    0,00   23,29    0,40   10,01\n"
    text = BANNER + f"{start}  {COLUMNS}{end}  {shares}"
    capture = read(f"{text}\n{average}  {COLUMNS}{average}  {shares}")
    assert whole(capture, "cpu_softirq") == 0.2329
    assert whole(capture, "cpu_busy") == pytest.approx(0.7999)
    assert {one.end_s for one in capture.measurements} == {None, 2.0}


def test_two_intervals_of_one_second_are_told_apart_at_once():
    head, rows, average = PLAIN.partition("\n\n")[0], *PLAIN.split("\n\n")[1:]
    found = mpstat_plain.read("\n\n".join([head, rows, rows, average]))
    assert [one.end_s for one in found.records] == [1, 2]
    assert all(one.cpus.keys() == {"all", "0"} for one in found.records)


def test_a_thousand_cpus_are_of_one_interval():
    shares = "    1.00    0.00    2.00    3.00    0.00    4.00    0.00   90.00\n"
    rows = "".join(f"10:00:02    {cpu:>4}{shares}" for cpu in (9, 1000, 1001))
    found = mpstat_plain.read(PLAIN.partition("\nAverage")[0] + rows)
    assert [len(one.cpus) for one in found.records] == [5]


@pytest.mark.parametrize(
    "time", ["11:59:59 AM", "오전 11시 59분 59초", "11시 59분 59초", " 9:05:07"]
)
def test_the_json_has_the_time_of_any_locale(time):
    rows = [cpu("all", sys=50.0)]
    later = time.replace("59초", "58초").replace(":59 AM", ":58 AM").replace("07", "06")
    capture = read(output((later, rows), (time, rows)))
    assert {one.end_s for one in capture.measurements} == {None, 1.0, 2.0}


def test_interrupts_by_cpu_alone_give_no_metric_and_are_no_error():
    head = "CPU        0/s        8/s\n"
    row = "0       1.00       2.00\n"
    capture = read(
        BANNER + f"10:00:00  {head}10:00:02  {row}\nAverage:  {head}Average:  {row}"
    )
    assert not capture.measurements
    assert "cpu-absent" in codes(capture)


def test_the_average_of_the_text_is_its_own():
    capture = golden_text("cap-de_DE-PALL.txt")
    assert whole(capture, "cpu_softirq") == 0.2673
    assert whole(capture, "cpu_busy_max") == 1


def test_an_average_that_is_cut_is_not_taken():
    text = (FILES / "cap-de_DE-PALL.txt").read_text().splitlines(keepends=True)
    capture = read("".join(text[:-1]))
    assert whole(capture, "cpu_softirq") == pytest.approx((2 * 0.2329 + 0.31) / 3)
    assert "cut-short" in codes(capture)


def test_a_report_without_interval_is_since_boot():
    capture = golden_text("cap-since-boot.txt")
    assert whole(capture, "cpu_softirq", span="since boot") == 0.1056
    assert not [one for one in capture.measurements if not one.labels]
    assert "since-boot" in codes(capture)


def test_softirqs_are_rates_times_the_seconds_over_all_cpus():
    capture = golden_text("cap-A.txt")
    assert whole(capture, "softirqs", softirq="NET_RX") == 18081 + 773
    assert whole(capture, "interrupts") == 6053


def test_the_corpus_gives_the_expected_shares(shared):
    with (shared / "corpus/sys/MANIFEST.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["path"].endswith(".json")]
    rows = [
        (row["path"], json.loads(row["expected"]))
        for row in rows
        if row["tool"] == "mpstat"
    ]
    for path, wanted in rows:
        if "all_idle" not in wanted:
            continue
        capture = load(shared / "corpus/sys" / path)
        soft = [one for one in capture.measurements if one.metric == "cpu_softirq"]
        assert len(soft) == wanted["reports"] + 1
        assert soft[0].value == pytest.approx(wanted["all_soft"] / 100)
        assert capture.facts["number_of_cpus"] == wanted["cpus"]


@pytest.mark.parametrize(
    ("name", "records"),
    [
        pytest.param("cap-killed.json", 2, id="killed"),
        pytest.param("lkp-1.json", 3, id="cpu -1 for all"),
    ],
)
def test_a_cut_file_gives_its_complete_records(shared, name, records):
    capture = load(shared / "corpus/sys/mpstat" / name)
    busy = [one for one in capture.measurements if one.metric == "cpu_softirq"]
    assert len(busy) == records + 1
    assert "cut-short" in codes(capture)


@pytest.mark.parametrize("name", ["cap-I-ALL.json", "lkp-5.json"])
def test_a_file_without_cpu_shares_says_how_to_call_mpstat(shared, name):
    capture = load(shared / "corpus/sys/mpstat" / name)
    (caveat,) = [one for one in capture.caveats if one.code == "cpu-absent"]
    assert "call mpstat with -u -P ALL" in caveat.todo.replace("Call", "call")
    assert not capture.measurements


def test_interrupts_of_the_json_are_rates_times_the_time():
    soft = [{"cpu": "0", "intr": [{"name": "NET_RX", "value": 3.0}]}]
    one = {"sum-interrupts": [{"cpu": "all", "intr": 10.0}], "soft-interrupts": soft}
    host = json.loads(output(("10:00:01", [cpu("all", usr=5)])))
    record = host["sysstat"]["hosts"][0]["statistics"][0] | one
    later = record | {"timestamp": "10:00:03"}
    host["sysstat"]["hosts"][0]["statistics"] = [record, later]
    capture = read(json.dumps(host))
    assert whole(capture, "interrupts") == 40
    assert whole(capture, "softirqs", softirq="NET_RX") == 12


@pytest.mark.parametrize(
    "path", sorted(FILES.glob("*.txt")), ids=lambda path: path.name
)
def test_the_quick_reading_gives_what_the_thorough_one_gives(path, monkeypatch):
    raw = read_raw(path)
    quick = mpstat.load(raw)
    monkeypatch.setattr(mpstat.mpstat_plain, "read", lambda text: None)
    assert mpstat.load(raw) == quick


@pytest.mark.parametrize(
    "path", sorted(FILES.glob("*.txt")), ids=lambda path: path.name
)
def test_a_file_of_a_killed_mpstat_is_read_quickly_too(path, monkeypatch):
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    texts = ["".join(lines[:end]) for end in range(4, len(lines) + 1)]
    raws = [RawFile.of(path, text.encode()) for text in texts]
    quick = [mpstat.load(raw) for raw in raws]
    monkeypatch.setattr(mpstat.mpstat_plain, "read", lambda text: None)
    for raw, one in zip(raws, quick, strict=True):
        slow = mpstat.load(raw)
        assert alike(one) == alike(slow)
        assert replace(one, measurements=()) == replace(slow, measurements=())


def alike(capture: Capture) -> list[Measurement]:
    """Return the measurements without their last digit, which zeros do not show."""
    return [one._replace(resolution=None) for one in capture.measurements]


PLAIN = (
    "Linux 6.1.0 (vm) \t30.11.2026 \t_x86_64_\t(2 CPU)\n\n"
    "10:00:00     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal   %idle\n"
    "10:00:02     all    1.00    0.00    2.00    3.00    0.00    4.00    0.00   90.00\n"
    "10:00:02       0    2.00    0.00    4.00    6.00    0.00    8.00    0.00   80.00\n"
    "\n"
    "Average:     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal   %idle\n"
    "Average:     all    1.00    0.00    2.00    3.00    0.00    4.00    0.00   90.00\n"
    "Average:       0    2.00    0.00    4.00    6.00    0.00    8.00    0.00   80.00\n"
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("Average:     all", "Average:      -1", id="-1 for all"),
        pytest.param(".00", "", id="--dec=0"),
        pytest.param("   0.00   90.00", "   0.00   99.00", id="shares above 100"),
        pytest.param("Average:       0 ", "Average:       1 ", id="another CPU"),
        pytest.param("Average:", "Average", id="no colon"),
        pytest.param("    1.00    0.00    2", "    x.00    0.00    2", id="no number"),
        pytest.param("%irq", "%xyz", id="another head"),
    ],
)
def test_a_text_that_is_not_plain_is_left_to_the_thorough_reading(old, new):
    assert mpstat_plain.read(PLAIN.replace(old, new)) is None


def test_a_plain_text_is_read_at_once():
    found = mpstat_plain.read(PLAIN)
    assert found.own["0"] == {"busy": 0.14, "soft": 0.08, "steal": 0.0}
    assert found.records[0].end_s == 2


def test_a_decimal_comma_is_read_at_once():
    assert mpstat_plain.read(PLAIN.replace(".", ",")).own["0"]["busy"] == 0.14


def test_the_place_of_a_cpu_is_no_number():
    text = PLAIN.replace("CPU  ", "CPU CORE SOCK NODE  ")
    text = text.replace("       0 ", "       0    0    0    0 ")
    capture = read(text)
    assert whole(capture, "cpu_busy", cpu="0") == 0.14


def test_the_json_of_sadf_is_not_taken(shared):
    assert not mpstat.sniff(read_raw(shared / "corpus/sys/sadf/cap-A.json"))


def test_the_corpus_gives_the_averages_of_its_texts(shared):
    for part in ("sys", "net"):
        folder = shared / "corpus" / part
        with (folder / "MANIFEST.csv").open(encoding="utf-8") as file:
            rows = [
                (row["path"], json.loads(row["expected"]))
                for row in csv.DictReader(file)
                if row["tool"] == "mpstat" and row["path"].endswith(".txt")
            ]
        for path, wanted in rows:
            capture = load(folder / path)
            average = wanted.get("average_all") or wanted.get("first_all") or {}
            average.setdefault("soft", str(wanted.get("average_soft", "")))
            if average["soft"]:
                soft = [
                    one for one in capture.measurements if one.metric == "cpu_softirq"
                ]
                told = {round(100 * one.value, 2) for one in soft}
                assert float(average["soft"].replace(",", ".")) in told, path
