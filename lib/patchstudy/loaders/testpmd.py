"""Read the statistics that DPDK's testpmd prints (``show port stats``, ``stop``).

What the values are (DPDK's testpmd guide). Every value has the label ``port``, except
those of the block of all ports.

``packet_rate``
    ``Rx-pps`` of a block of NIC statistics: since the last time it was shown, not over
    the run; with the label ``direction`` = ``received``. ``Tx-pps`` the same as
    ``sent``. Where a block stands several times (``--stats-period``) it is the mean of
    all but the first, which covers everything before it.
``drops``
    ``RX-missed`` of the NIC (it had no descriptor), with the packets as exposure;
    ``RX-dropped`` and ``TX-dropped`` of the forward statistics with label
    ``direction``.
``errors``
    ``RX-errors`` and ``TX-errors`` with label ``direction``.

Counters run since the start of testpmd or ``clear port stats``; bit rates (``Rx-bps``)
are of frames, not of payload, and are left out. The screen of DPDK's pktgen is refused:
it is a picture of one moment.
"""

import re
from collections.abc import Iterator
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading
from patchstudy.records import Capture, Fault, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "packet_rate": "Rx-pps, Tx-pps: the mean of all blocks but the first",
    "drops": "RX-missed of the last block of a NIC; RX-dropped, TX-dropped",
    "errors": "RX-errors, TX-errors of the last block",
}
_HEAD: Final = re.compile(
    r"^\s*(?:#{5,} NIC (?:extended )?statistics for port (?P<nic>\d{1,5}) +#{5,}"
    r"|-{5,} Forward statistics for port (?P<forward>\d{1,5}) +-{5,}"
    r"|\+{5,} ?Accumulated forward statistics for (?P<all>all ports) ?\+{5,})\s*$"
)
_FIELD: Final = re.compile(r"\b([RT][Xx]-[a-z]+):\s*(\d{1,20})\b")
_SCREEN: Final = re.compile(r"<Main Page>|^\W*Pkts/s\s+(?:Max/)?Rx\b")
_BEGUN: Final = re.compile(
    r"^testpmd> |packet forwarding - ports=\d+ - cores=\d+"
    r"|^(?:STDOUT: )?Set \w+ packet forwarding mode"
)
_WAYS: Final = {"R": "received", "T": "sent"}


def sniff(raw: RawFile) -> bool:
    """Say whether a line is the head of testpmd's statistics, or DPDK pktgen's."""
    lines = plain_head(raw)
    marks = (_HEAD, _BEGUN, _SCREEN)
    return any(mark.search(line) for line in lines for mark in marks)


def load(raw: RawFile) -> Capture:
    """Read the last statistics of each port.

    Raises
    ------
    CaptureError
        If the file is the screen of DPDK's pktgen.
    """
    blocks = list(_blocks(raw))
    lines = [line for _number, line in plain(raw.text)]
    if not blocks and any(_SCREEN.search(line) for line in lines):
        raise CaptureError(
            raw.path,
            "the screen of DPDK's pktgen is one moment of a run and is not read;"
            " save testpmd's statistics or a counter before and after",
        )
    reading = Reading()
    last = {(kind, port): fields for kind, port, fields in blocks}
    for (kind, port), fields in last.items():
        labels = {} if port == "all ports" else {"port": port}
        if kind == "nic":
            shown = [one for *key, one in blocks if key == [kind, port]]
            _rates(shown, labels, reading)
            _nic(fields, labels, reading)
        else:
            _forward(fields, labels, reading)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="testpmd",
        workload={
            "protocol": None,
            "direction": None,
            "streams": None,
            "duration_s": None,
        },
        measurements=tuple(reading.measurements),
        facts={
            f"{port} {name}" if port == "all ports" else f"port {port} {name}": value
            for (_kind, port), fields in last.items()
            for name, value in fields.items()
            if name.endswith(("-packets", "-bytes", "-total"))
        },
        caveats=tuple(reading.caveats),
        error=None
        if reading.measurements
        else Fault(text="no statistics; was testpmd stopped too early?"),
    )


def _blocks(raw: RawFile) -> Iterator[tuple[str, str, dict[str, int]]]:
    """Yield kind, port and fields of each block, up to its end or the next head."""
    kind = port = ""
    fields: dict[str, int] = {}
    lines = [line for _number, line in plain(raw.text)]
    for line in lines[:-1]:  # what has no line end may be cut in a number
        head = _HEAD.match(line)
        if kind and (head or re.match(r"^\s*[#+-]{20,}\s*$", line)):
            yield kind, port, fields
            kind = ""
        if head:
            kind = str(head.lastgroup)
            port, fields = str(head[kind]), {}
        elif kind:
            fields |= {name: int(value) for name, value in _FIELD.findall(line)}
    if kind:
        yield kind, port, fields


def _rates(
    shown: list[dict[str, int]], labels: dict[str, str], reading: Reading
) -> None:
    """Add packets per second, the mean of all but the first block."""
    for name in ("Rx-pps", "Tx-pps"):
        values = [fields[name] for fields in shown if name in fields]
        used = values[1:] or values
        if used:
            way = {**labels, "direction": _WAYS[name[0]]}
            reading.whole("packet_rate", sum(used) / len(used), way, resolution=1.0)
        if len(values) == 1:
            reading.doubt(
                "since-last-show",
                "rates are since the statistics were shown before, which may be before"
                " the run",
                "show the statistics at the start and at the end of the run",
            )


def _nic(fields: dict[str, int], labels: dict[str, str], reading: Reading) -> None:
    for name, value in fields.items():
        way = {**labels, "direction": _WAYS[name[0]]}
        packets = fields.get(f"{name[0]}X-packets")
        if name == "RX-missed":
            exposure = None if packets is None else float(packets + value)
            reading.whole("drops", float(value), way, exposure=exposure)
        elif name.endswith("-errors"):
            exposure = None if packets is None else float(packets)
            reading.whole("errors", float(value), way, exposure=exposure)


def _forward(fields: dict[str, int], labels: dict[str, str], reading: Reading) -> None:
    for name, value in fields.items():
        if not name.endswith("-dropped"):
            continue
        total = fields.get(f"{name[0]}X-total")
        reading.whole(
            "drops",
            float(value),
            {**labels, "direction": _WAYS[name[0]], "place": "forward"},
            exposure=None if total is None else float(total),
        )
