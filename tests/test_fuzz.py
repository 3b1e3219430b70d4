"""Twenty thousand mutated files, the same each time; benchmarks/fuzz.py tries more."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from patchstudy.blocks import perf
from patchstudy.records import Capture, Measurement


def _script(name):
    path = Path(__file__).parents[1] / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fuzz, patterns = _script("fuzz"), _script("patterns")


@pytest.mark.slow
def test_no_mutated_file_crashes_hangs_or_gives_what_cannot_be():
    tallies = fuzz.run(fuzz.seeds(), seed=20, count=20_000)
    assert sum(one.inputs for one in tallies.values()) == 20_000
    assert sum(one.refused for one in tallies.values()) > 4000
    assert [line for one in tallies.values() for line in one.failures] == []


def test_a_json_value_of_another_kind_is_read_or_refused():
    assert len(list(fuzz.of_other_kinds(fuzz.seeds("mpstat"), most=20))) > 300
    assert fuzz.other_kinds(fuzz.seeds(), most=30) == []


def test_a_value_of_another_kind_that_does_harm_is_told(monkeypatch):
    def load_raw(raw):
        raise TypeError("unhashable type: 'dict'")

    monkeypatch.setattr(fuzz.loaders, "load_raw", load_raw)
    (first, *_others) = fuzz.other_kinds(fuzz.seeds("nstat"), most=1)
    assert first.endswith("TypeError: unhashable type: 'dict'")


def test_the_same_seed_makes_the_same_inputs():
    paths = fuzz.seeds("ping")
    one, other = (
        [next(made)[2] for _ in range(20)]
        for made in (fuzz.inputs(paths, 3), fuzz.inputs(paths, 3))
    )
    assert one == other


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.txt", "Linux 6.1 x\n", ""),  # no loader knows it: refused, no failure
        ("b.json", "[" * 100_000, ""),
    ],
)
def test_a_refusal_is_no_failure(name, text, problem):
    tally = fuzz.Tally()
    assert fuzz.tried(name, text.encode(), tally) == problem
    assert (tally.inputs, tally.refused) == (1, 1)


#: What was found: an input of one golden file each, that hung, crashed or lied.
FOUND = {
    "sysctl, exponential": b"dri" + b"1.5.2" * 60 + b"\nversion: 6.1\n",
    "cpuinfo, cubic": b"processor\t: 0\n" + b" " * 4000 + b"x\n",
    "ping of Windows, quadratic": b"Ping x with 32 bytes of data:\nReply from a: "
    b"bytes=32 time=1ms TTL=64\n" + b"a: " * 80_000 + b"\n    a = 1, b = 1, c = 0\n",
    "ftrace_graph, many blanks": b"# tracer: function_graph\n 0) 1.0 us | f();\n 0)"
    + b" " * 100_000 + b"\n 0)" + b" " * 3000 + b"x\n",
    "ping, quadratic": b"PING a (1.1.1.1) 56(84) bytes of data.\n"
    + b"1 bytes from icmp_seq=1 time=" * 9000 + b"\n\n--- a ping statistics ---\n"
    b"1 packets transmitted, 1 received, 0% packet loss, time 0ms\n",
    "perf stat, many blanks": b"\n Performance counter stats for 'a':\n\n"
    b"   10      context-switches" + b" " * 250_000 + b"x\n\n 0.1 seconds time "
    b"elapsed\n",
    "ethtool -S, a blank that is none": b"NIC statistics:\n     rx_bytes:\x1d 370\n",
    "perf script, many blanks": b"a 1 [000] 1.0: cycles:\n\t1 f (x)\n\n  s"
    + b" " * 250_000 + b"\n\na 1 [000] 2.0: cycles:\n\t1 f (x)\n",
    "bpftrace, no number": b'{"type": "hist", "data": {"@": [{"min": {}, "count": 1}]}'
    b"}\n",
    "iperf3, without end": b'{"event":"start","data":{"version":"iperf 3.17"}}\n'
    b'{"event":"interval","data":{"streams":[],"sum":{"start":0,"end":1e999,"seconds":1,'
    b'"bytes":9,"bits_per_second":72,"sender":true}}}\n',
    "hist with letters": b"# trigger info: hist:keys=a\n{ a: 1 } hitcount: 2aa\n",
    "irtt, no object": b'{"version": {"irtt": "0.9.1"}, "system_info": {}, '
    b'"config": {}, "stats": {"packets_sent": 1, "packets_received": 1, "rtt": [3]}}\n',
    "turbostat, a column without a name": b"CPU\tBzy_MHz\tBusy%\t\tIRQ\n"
    b"-\t1000\t1.5\t7\t3\n0\t1000\t1.5\t7\t3\n",
    "netperf, one endless line": b"MIGRATED TCP STREAM TEST from 0.0.0.0 () port 0 "
    b"AF_INET to 1.1.1.1 () port 0 AF_INET\n"
    + b"1.1 " * 250_000 + b"\n 1 2 3 4.0 5.0\n",
    "nuttcp, long digits": b"megabytes=2.2951 real_sec=1.00 rate_Mbps=19.2520 tx_cpu=1 "
    + b"1" * 20_000 + b"\n",
    "perf script, branches in the middle": b"a 1 [000] 1.0: cycles: "
    + b"1/2/P/-/-/5 " * 12_000 + b" x\n\t1 f (x)\n\n",
    "perf stat, many empty lines": b"# started on x\n" + b"\r\n" * 10_000
    + b" Performance counter stats for 'a':\n\n   10      context-switches\n\n 0.1 s",
    "ftrace_graph, blanks before an arrow": b"# tracer: function_graph\n"
    b" 0) 1.0 us | f();\n 0) a" + b" " * 100_000 + b"=\n",
    "ss, many colons": b"ESTAB 0      0      192.0.2.1:40332 192.0.2.2:5201 bbr rto:2 "
    b"rtt:1/2\nESTAB 0 0 " + b"a:" * 100_000 + b"\n",
    "iperf3 text, many blanks": b"Connecting to host 192.0.2.2, port 5201\n[ ID] "
    b"Interval           Transfer     Bitrate\n[SUM]" + b" " * 250_000 + b"x\n",
    "fping, all pings lost": b"x : - - - -\n",
    "ftrace verbose, a time that is none": b"# tracer: nop\n#\n"
    b"  a   1   1 16 00000001 00000000 [71f21c65] 56.1.2ms (+0.010ms): napi_poll: x\n",
    "perf report, endless samples": b"# Samples: 1 of event 'cycles'\n# Overhead, "
    b"Samples,Command,Symbol\n 26.17% , " + b"9" * 400 + b",a,[k] f\n",
    "perf stat, a value with two points":
        b"0.2 S0,1,1,212.81,msec,cpu-clock,1,100,00\n",
    "trex, a rate many times": b"Starting TRex Tr\n{" + b'"rx_pps":1, ' * 16_000
    + b"\n",
    "drops without digits": b"dropwatch> start\nx drops at tcp_v_rcv+a (xffff) [s]\n",
}  # fmt: skip


@pytest.mark.parametrize(
    ("rest", "left"),
    [
        (b"", b""),
        (b" x 1/2/P/-/-/5", b" x"),
        (b" 1f f (x)  1/2/P/-/-/5 3/4/P/-/-/5 ", b" 1f f (x)"),
        (b" 1/2/P/-/-/5 f 3/4/P/-/-/5", b" 1/2/P/-/-/5 f"),
        (b" /a/b/c/d/e (x)", b" /a/b/c/d/e (x)"),
    ],
)
def test_only_branches_at_the_end_of_a_line_are_taken_off(rest, left):
    assert perf._without_branches(rest) == left


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_is_refused_or_read_in_time(name):
    fuzz.signal.signal(fuzz.signal.SIGVTALRM, fuzz._too_slow)
    tally = fuzz.Tally()
    assert fuzz.tried("a.txt", FOUND[name], tally) == ""


def test_a_loader_that_hangs_is_stopped(monkeypatch):
    def hang(_):
        while True:
            pass

    monkeypatch.setattr(fuzz, "SLOWEST_S", 0.02)
    monkeypatch.setattr(fuzz.loaders, "load_raw", hang)
    fuzz.signal.signal(fuzz.signal.SIGVTALRM, fuzz._too_slow)
    assert fuzz.tried("a", b"x", fuzz.Tally()) == "stopped: it takes too long"


def test_a_value_without_a_digit_in_the_file_has_no_source(monkeypatch):
    lied = Capture(
        path=Path("a"), sha256="", tool="x",
        measurements=(Measurement(metric="loss", value=0.5),),
    )  # fmt: skip
    monkeypatch.setattr(fuzz.loaders, "load_raw", lambda _: lied)
    assert "loss has no source" in fuzz.tried("a", b"no number", fuzz.Tally())


def test_a_crash_is_told(monkeypatch):
    def crash(_):
        raise KeyError("x")

    monkeypatch.setattr(fuzz.loaders, "load_raw", crash)
    assert fuzz.tried("a", b"x", fuzz.Tally()) == "KeyError: 'x'"


@pytest.mark.slow
def test_no_pattern_takes_more_than_linear_time():
    patterns.signal.signal(patterns.signal.SIGVTALRM, patterns.too_slow)
    tried = patterns.patterns()
    assert len(tried) > 500
    assert {
        n: why for n, one in tried.items() if (why := patterns.slow(one, 3000))
    } == {}


@pytest.mark.parametrize(
    ("pattern", "grows"),
    [
        (r"(\S.*?) +(\d+)", True),
        (r"a\s*b?\s*c", True),
        (rb"[a-z]*[a-y]*!", True),
        (r"a(?:b|c\d*)*+ x", False),
        (r"\s*+(\w+) \d{1,9}", False),
    ],
)
def test_a_pattern_of_more_than_linear_time_is_found(pattern, grows):
    patterns.signal.signal(patterns.signal.SIGVTALRM, patterns.too_slow)
    assert bool(patterns.slow(re.compile(pattern), 8000)) is grows
