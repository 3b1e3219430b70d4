"""What a run moved follows from its own counters; what is not known is absent."""

from dataclasses import replace
from pathlib import Path

import pytest

from patchstudy.moved import moved
from patchstudy.records import Capture, Measurement
from patchstudy.study import Run, Source


def run(*sources):
    return Run(
        name="r", device="d", variant="v", build="", boot="1", run="1", workload="w",
        purpose="profile", position=None, started_at=None, published=(), factors={},
        facts={},
        sources=tuple(sources),
    )  # fmt: skip


def source(tool, *values, place="", **more):
    capture = Capture(path=Path("f"), sha256="", tool=tool)
    measurements = tuple(
        Measurement(metric=name, value=value, labels=labels)
        for name, value, labels in values
    )
    return Source(
        place=place, capture=replace(capture, measurements=measurements, **more)
    )


IPERF = source("iperf3", ("throughput", 8e6, {}), workload={"duration_s": 4.0})
MPSTAT = source("mpstat", ("cpu_busy", 0.5, {}), facts={"number_of_cpus": 2})
LINK = source(
    "ip_link",
    ("event:rx_packets", 90, {"interface": "eth0"}),
    ("event:tx_packets", 4000, {"interface": "eth0"}),
    ("event:rx_packets", 99999, {"interface": "lo"}),
)
NSTAT = source("nstat", ("event:IpForwDatagrams", 3000, {}))


def test_bytes_packets_and_cpu_time_are_those_of_the_run():
    found = moved(run(IPERF, MPSTAT, LINK))
    assert (found.byte, found.packet, found.cpu_s) == (4e6, 4000, 4.0)
    assert found.cpu_per_packet == pytest.approx(1e-3)
    assert found.cpu_per_byte == pytest.approx(1e-6)
    assert found.counters == (
        "packets: tx_packets of eth0 (ip_link)",
        "CPU time: mpstat",
    )
    assert not found.missing


def test_forwarded_packets_come_before_those_of_an_interface():
    assert moved(run(IPERF, LINK, NSTAT)).packet == 3000


def test_what_no_counter_tells_is_absent_with_the_reason():
    found = moved(run(IPERF))
    assert (found.packet, found.cpu_s, found.cpu_per_packet) == (None, None, None)
    assert found.missing == (
        "no counter of packets",
        "no CPU load of one machine with its number of CPUs",
    )


def test_of_two_machines_the_load_counts_where_the_packets_are():
    client = source("mpstat", ("cpu_busy", 0.1, {}), place="client",
                    facts={"number_of_cpus": 8})  # fmt: skip
    router = source("mpstat", ("cpu_busy", 0.5, {}), place="router",
                    facts={"number_of_cpus": 2})  # fmt: skip
    packets = source("nstat", ("event:IpForwDatagrams", 10, {}), place="router")
    assert moved(run(IPERF, client, router, packets)).cpu_s == 4.0
    assert moved(run(IPERF, client, router)).cpu_s is None


def test_without_a_throughput_the_clock_gives_the_length():
    uptime = source("uptime", ("event:uptime", 5.0, {}))
    found = moved(run(uptime, LINK, MPSTAT))
    assert (found.seconds, found.byte, found.rate) == (5.0, None, 800)
    assert found.cpu_s == 5.0
