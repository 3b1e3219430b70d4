import json
import os
from pathlib import Path

import pytest

from patchstudy import loaders
from patchstudy.errors import CaptureError
from patchstudy.loaders import LOADERS, as_json, load, read
from patchstudy.loaders.text import LONGEST_LINE, refuse_long_lines
from patchstudy.records import Capture, RawFile

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "golden" / "loaders"
RAW = sorted(
    path.relative_to(ROOT)
    for path in FOLDER.glob("*/*")
    if path.name != "SOURCE" and not path.name.endswith(".expected.json")
)
raw_files = pytest.mark.parametrize(
    "path", RAW, ids=lambda path: "/".join(path.parts[3:])
)


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


def takers(raw: RawFile) -> list[str]:
    return [name for name, loader in LOADERS.items() if loader.sniff(raw)]


def loaded(path: Path) -> Capture | None:
    """Load a file, or return None after an error that names it."""
    problem = "none"
    try:
        return load(path)
    except CaptureError as error:
        problem = str(error)
    assert problem.startswith(str(path))
    assert "recognised as" not in problem
    return None


def values(capture: Capture) -> dict:
    return {
        (one.metric, tuple(sorted(one.labels.items())), one.start_s): one.value
        for one in capture.measurements
    }


@raw_files
def test_a_raw_file_is_read_as_expected(path, golden):
    text = json.dumps(as_json(load(path)), indent=1, allow_nan=False) + "\n"
    golden(text, f"loaders/{path.parent.name}/{path.name}.expected.json")


@raw_files
def test_of_a_test_the_start_is_told_or_why_it_is_not(path):
    capture = load(path)
    if "protocol" not in capture.workload:
        return
    codes = [one.code for one in capture.caveats]
    assert codes.count("clock-unknown") == (capture.started_at is None)


@raw_files
def test_exactly_the_loader_of_the_folder_takes_a_file(path):
    assert takers(read(path)) == [path.parent.name]


@raw_files
def test_a_file_cut_short_is_refused_or_gives_no_more_than_the_whole(path, tmp_path):
    data = read(path).data
    cut = tmp_path / path.name
    cut.write_bytes(data[: len(data) * 2 // 3])
    part = loaded(cut)
    if part is None:
        return
    whole = values(load(path))
    doubted = {one.code for one in part.caveats} & {"cut-short", "no-line-end"}
    assert values(part).keys() <= whole.keys()
    assert part.error or doubted or values(part).items() <= whole.items()


@pytest.mark.parametrize("tool", LOADERS)
def test_a_loader_has_a_raw_file_and_tells_its_source(tool):
    assert [path for path in RAW if path.parent.name == tool]
    assert "icence" in (FOLDER / tool / "SOURCE").read_text(encoding="utf-8")


ENCODED = [
    "iperf3/v312-tcp-fwd.json",
    "iperf3/v37-tcp-bidir-p2.json",
    "iperf3/v3171-jsonstream-bidir.jsonl",
    "iperf2_csv/v218-csv-tcp-p3.csv",
    "irtt/v090-loss-trimmed.json",
    "netperf/v270-omni-csv-o.csv",
    "ping/iputils-20221126-loss30.txt",
    "trex/two-ports.txt",
]
#: How other systems store the same text: Windows' editors and PowerShell.
ENCODINGS = {
    "line ends": lambda text: text.replace("\n", "\r\n").encode(),
    "UTF-8 mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "UTF-16LE": lambda text: (
        b"\xff\xfe" + text.replace("\n", "\r\n").encode("utf-16-le")
    ),
    "UTF-16BE": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", ENCODED)
def test_the_encoding_does_not_matter(name, encoding):
    raw = read(FOLDER.relative_to(ROOT) / name)
    other = RawFile.of(raw.path, ENCODINGS[encoding](raw.text))
    found, same = loaders.load_raw(other), loaders.load_raw(raw)
    assert found.measurements == same.measurements
    assert found.caveats == same.caveats


PASTED = [
    "ethr/head-tcp-bandwidth-n4.txt",
    "fping/v51-c5.txt",
    "irtt/v090-basic.txt",
    "iperf2/v218-text-tcp-dualtest-d.txt",
    "netperf/v270-omni-human-O.txt",
    "netperf/v270-tcp_stream-4-parallel-concat.txt",
    "ntttcp/tcp-receiver.txt",
    "nuttcp/v612-tcp-v.txt",
    "ping/iputils-20221126-loss30.txt",
    "qperf/v0411-tcp_bw_lat.txt",
    "trex/wrapper-log.txt",
    "uperf/v1-rr-tcp.txt",
    "wrk/v410-latency.txt",
]


def each(text, mark):
    """Put a mark before every line; a carriage return is no line end."""
    return "".join(f"{mark}{line}\n" for line in text.rstrip("\n").split("\n"))


AROUND = {
    "indent": lambda text: each(text, "    "),
    "tab": lambda text: each(text, "\t"),
    "fence": lambda text: f"# Results\n\n```\n{text}\n```\n",
    "page": lambda text: f"<p>\n<pre>\n{text}\n</pre>\n",
    "mail": lambda text: each(text, "> "),
    "shell": lambda text: f"root@dut:~# tool -x\n{text}\nroot@dut:~# \n",
    "stamps": lambda text: each(text, "[2026-01-01 10:00:00] "),
    "no-break": lambda text: text.replace("  ", "\u00a0 "),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", PASTED)
def test_a_paste_is_read_as_the_file_itself(name, around):
    raw = read(FOLDER.relative_to(ROOT) / name)
    pasted = RawFile.of(raw.path, AROUND[around](raw.text).encode())
    found = loaders.load_raw(pasted)
    assert found.measurements == loaders.load_raw(raw).measurements
    assert found.sha256 == pasted.digest


def test_a_paste_that_was_cleaned_says_so(tmp_path):
    path = tmp_path / "run.txt"
    text = (FOLDER / "qperf/v0411-tcp_bw_lat.txt").read_text(encoding="utf-8")
    path.write_text(AROUND["fence"](text), encoding="utf-8")
    assert "paste" in [one.code for one in load(path).caveats]


def test_a_file_that_is_refused_with_marks_and_without_gives_its_own_reason():
    text = each('{"start": {"connected": [], "version": "iperf 3.12"}, "x": [1,', "> ")
    with pytest.raises(CaptureError, match="not JSON"):
        loaders.load_raw(RawFile.of(Path("run.json"), text.encode()))


def test_an_empty_file_is_refused(tmp_path):
    path = tmp_path / "tcp.iperf3.json"
    path.write_bytes(b"\n")
    with pytest.raises(CaptureError, match=r"empty file; did the tool fail"):
        load(path)


def test_an_unknown_file_is_refused_with_the_known_tools(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("the fan was loud\n", encoding="utf-8")
    begins = "it begins 'the fan was loud'"
    with pytest.raises(CaptureError, match=rf"recognises it; {begins}; .* mpstat, "):
        load(path)


def test_the_beginning_of_an_unknown_binary_is_not_printed(tmp_path):
    path = tmp_path / "notes.bin"
    path.write_bytes(b"\x1b[2Jhello\n")
    with pytest.raises(CaptureError, match="recognises it; known tools"):
        load(path)


def test_a_gzipped_file_is_read_with_the_digest_of_the_gzip(tmp_path):
    import gzip

    plain = ROOT / "tests/golden/loaders/uptime/udp200-egress80.uptime.after.txt"
    path = tmp_path / "uptime.gz"
    path.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    packed = load(path)
    assert packed.measurements == load(plain).measurements
    assert packed.sha256 != load(plain).sha256


def test_a_file_that_tells_no_size_is_read_whole():
    proc = Path("/proc/version")
    if not proc.exists():
        pytest.skip("no /proc/version here")
    assert loaders.read(proc).data == proc.read_bytes()


def test_no_more_is_read_of_a_file_that_grows_than_of_another(tmp_path, monkeypatch):
    path = tmp_path / "grows"
    path.write_bytes(b"x" * 3000)
    told = os.stat_result((0o100644, 0, 0, 1, 0, 0, 1000, 0, 0, 0))
    monkeypatch.setattr(loaders.os, "stat", lambda _path: told)
    assert len(loaders.read(path).data) == 3000
    monkeypatch.setattr(loaders, "MAX_BYTES", 2000)
    with pytest.raises(CaptureError, match="file larger than"):
        loaders.read(path)


@pytest.mark.parametrize("corpus", ["lab", "corpus"])
def test_every_shared_file_is_read_or_refused(shared, corpus):
    paths = [path for path in (shared / corpus).rglob("*") if path.is_file()]
    captures = [loaded(path) for path in paths]
    read_well = [as_json(capture) for capture in captures if capture]
    assert 100 < len(read_well) < len(paths)


def test_the_names_of_lab_files_agree_with_the_loaders_that_take_them(shared):
    known = {
        ".mpstat.json": "mpstat",
        ".run.json": "run.json",
        ".nstat.": "nstat",
        ".proc_net_dev.": "proc_net_dev",
        ".softnet_stat.": "softnet_stat",
        ".ethtool_S.": "ethtool_s",
        ".ip_s_link.": "ip_link",
        ".tc_s_qdisc.": "tc_qdisc",
        ".uptime.": "uptime",
        ".tmi_stats.": "counters",
        ".kprobe_profile.": "kprobe_profile",
        ".perf_folded.": "folded",
    }
    for part, tool in known.items():
        paths = [one for one in (shared / "lab").rglob(f"*{part}*") if one.is_file()]
        assert paths
        assert {load(path).tool for path in paths} == {tool}


def test_the_json_has_the_promised_keys():
    promised = {"path", "sha256", "tool", "tool_version", "workload", "started_at"}
    promised |= {"measurements", "facts", "caveats", "error"}
    capture = load(Path("tests/golden/loaders/mpstat/cap-PALL.json"))
    printed = as_json(capture)
    assert printed.keys() == promised
    assert printed["measurements"][0] == {
        "metric": "cpu_busy",
        "value": 1.0,
        "unit": "1",
        "labels": {},
        "start_s": 0.0,
        "end_s": 1.0,
    }


def raw(data: bytes) -> RawFile:
    return RawFile(path=Path("a.txt"), data=data, digest="")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x" * LONGEST_LINE,
        b"a\n" * LONGEST_LINE,
        b"x\n" + b"y" * LONGEST_LINE + b"\n",
        b'\xef\xbb\xbf {"a": "' + b"x" * LONGEST_LINE + b'"}',
        b"iperf3 says:\n[" + b"1," * LONGEST_LINE + b"1]\nbye\n",
    ],
    ids=["empty", "longest", "many", "second", "JSON", "JSON inside"],
)
def test_a_line_that_a_tool_may_print_is_taken(data):
    refuse_long_lines(raw(data))


@pytest.mark.parametrize(("before", "line"), [(b"", 1), (b"a\n" * 200_000, 200_001)])
def test_a_line_that_no_tool_prints_is_refused(before, line):
    data = before + b"{}\n" + b"x" * (LONGEST_LINE + 1) + b"\nend\n"
    with pytest.raises(CaptureError) as caught:
        refuse_long_lines(raw(data))
    assert str(caught.value) == (
        f"a.txt:{line + 1}: a line of over 262144 bytes; is the file damaged?"
    )
