"""Read the JSON of TRex statistics, alone or after a wrapper's words.

``trex-txrx.py`` and others print what TRex's ``get_stats()`` returns: an object for
each port ("0", "1"), ``total`` (both ports added up), ``global``, ``flow_stats``.

What the values are (TRex's manual; checked by recomputing): of the object ``total``,
and of each port with the label ``port``.

``packet_rate``
    ``rx_pps``: frames received per second. TRex gives moving averages at the end of
    the run, no means over it.
``throughput``, ``send_rate``
    ``rx_bps``, ``tx_bps``: bits of layer 2 (frames with their FCS, without preamble
    and gap), not payload. The ``..._L1`` keys, which hold those 20 byte too, are not
    used.
``loss``
    1 - ipackets / opackets, both of all ports. With two ports the one of port 0 is
    what port 1 sent and port 0 did not get.
``errors``
    ``ierrors`` and ``oerrors``.

"N/A" stands where there is no number; it is absent. The wrapper snafu logs one flat
object with the rates of the run alone: of it there is no loss.
"""

import json
import re
from collections.abc import Iterator
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.documents import together
from patchstudy.loaders.reading import Reading, number
from patchstudy.records import Capture, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "packet_rate": "total.rx_pps; by port: <port>.rx_pps",
    "throughput": "total.rx_bps; by port: <port>.rx_bps",
    "send_rate": "total.tx_bps; by port: <port>.tx_bps",
    "loss": "1 - total.ipackets / total.opackets; by port: of the other's opackets",
    "errors": "total.ierrors, total.oerrors; by port the same",
}
_OPENING: Final = re.compile(r'\{\s*"(?:\d{1,3}|total|global|flow_stats|latency)"\s*:')
_KEYS: Final = re.compile(r'"(?:opackets|ipackets|rx_bps_L1|tx_bps_L1)"\s*:')
_FLAT: Final = re.compile(r"\{[^{}]*+\}")
_RATES: Final = ('"rx_pps"', '"tx_pps"')
_STARTED: Final = re.compile(
    r"^(\d{4}-\d\d-\d\dT[\d:]{8}Z) .*Starting TRex", re.MULTILINE
)
_NOT_A_NUMBER: Final = re.compile(r"(:\s*)-?(?:nan|inf(?:inity)?)\b", re.IGNORECASE)


def sniff(raw: RawFile) -> bool:
    """Say whether the text holds an object of TRex's statistics."""
    if _OPENING.search(raw.head) and _KEYS.search(raw.head):
        return True
    flat = next(_flat_texts(raw.head), "")
    return '"rx_drop_bps"' in flat or "Starting TRex Tr" in raw.head


def load(raw: RawFile) -> Capture:
    """Read each object of statistics in the file.

    Raises
    ------
    CaptureError
        If the JSON is cut or has no packet counters.
    """
    if not _KEYS.search(raw.text) and (flat := list(_flat(raw))):
        return together([_wrapped(raw, one) for one in flat])
    return together([_capture(raw, stats) for stats in _objects(raw)])


def _flat_texts(text: str) -> Iterator[str]:
    """Yield what stands in braces without others in it, and names both rates."""
    for match in _FLAT.finditer(text):
        if all(name in match[0] for name in _RATES):
            yield match[0]


def _flat(raw: RawFile) -> Iterator[dict[str, object]]:
    """Yield the flat objects that the wrapper snafu logs."""
    for text in _flat_texts(_NOT_A_NUMBER.sub(r"\1null", raw.text)):
        try:
            yield json.loads(text)
        except ValueError as error:
            raise CaptureError(
                raw.path, f"not the JSON of TRex's wrapper ({error})"
            ) from error


def _wrapped(raw: RawFile, run: dict[str, object]) -> Capture:
    """Read one flat object: rates without counters."""
    reading = Reading()
    _values(run, {}, reading)
    reading.note("loss-absent", "the wrapper tells rates and no packet counters")
    size, streams = number(run.get("packet_size")), number(run.get("num_stream"))
    bits, packets = number(run.get("tx_bps")), number(run.get("tx_pps"))
    if size and bits and packets and abs(bits / packets / 8 - size) > 4.5:
        reading.doubt(
            "frame-size",
            f"the bits are those of {bits / packets / 8:.1f} byte a packet; the packets"
            f" have {size:.4g}",
            "compare packet_rate",
        )
    started = _STARTED.search(raw.text)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="trex",
        started_at=started[1] if started else None,
        workload={
            "protocol": None,
            "direction": None,
            "streams": None if streams is None else int(streams),
            "duration_s": number(run.get("duration")),
            "packet_size": None if size is None else int(size),
        },
        measurements=tuple(reading.measurements),
        facts={
            name: run[name]
            for name in ("cpu_util", "packet_rate", "rx_drop_bps")
            if name in run
        },
        caveats=tuple(reading.caveats),
    )


def _objects(raw: RawFile) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    text = _NOT_A_NUMBER.sub(r"\1null", raw.text)
    position = 0
    while opening := _OPENING.search(text, position):
        try:
            value, position = json.JSONDecoder().raw_decode(text, opening.start())
        except (ValueError, RecursionError) as error:
            where = str(text.count("\n", 0, opening.start()) + 1)
            problem = f"not the JSON of TRex ({error}); was it cut short?"
            raise CaptureError(raw.path, problem, where=where) from error
        if isinstance(value, dict) and _KEYS.search(json.dumps(value)):
            found.append(value)
    if not found:
        raise CaptureError(raw.path, "no statistics of TRex with packet counters")
    return found


def _capture(raw: RawFile, stats: dict[str, object]) -> Capture:
    reading = Reading()
    ports = {name: _part(stats, name) for name in stats if name.isdecimal()}
    total = _part(stats, "total") or _added(list(ports.values()))
    _values(total, {}, reading)
    _loss(total, total, {}, reading)
    for name, port in ports.items():
        _values(port, {"port": name}, reading)
    if len(ports) == 2:
        for (name, port), other in zip(
            ports.items(), reversed(ports.values()), strict=True
        ):
            _loss(other, port, {"port": name}, reading)
    reading.note("layer-2", "bit rates are those of frames (layer 2), not of payload")
    reading.note("moving-average", "rates are TRex's moving averages at the end")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="trex",
        workload={
            "protocol": None,
            "direction": "bidir" if _both(ports) else None,
            "streams": len(ports) or None,
            "duration_s": None,
        },
        measurements=tuple(reading.measurements),
        facts=_facts(stats, total),
        caveats=tuple(reading.caveats),
    )


def _part(stats: dict[str, object], name: str) -> dict[str, object]:
    part = stats.get(name)
    return part if isinstance(part, dict) else {}


def _added(ports: list[dict[str, object]]) -> dict[str, object]:
    """Return the sum of the ports, of what all of them tell."""
    names = [name for name in (ports[0] if ports else {}) if not name.endswith("util")]
    added: dict[str, object] = {}
    for name in names:
        values = [number(port.get(name)) for port in ports]
        known = [value for value in values if value is not None]
        if len(known) == len(ports):
            added[name] = sum(known)
    return added


def _both(ports: dict[str, dict[str, object]]) -> bool:
    return sum(bool(number(port.get("opackets"))) for port in ports.values()) > 1


def _values(part: dict[str, object], labels: dict[str, str], reading: Reading) -> None:
    """Add the rates and the errors of the total or of one port."""
    received, sent = number(part.get("rx_bps")), number(part.get("tx_bps"))
    reading.whole("packet_rate", number(part.get("rx_pps")), labels)
    reading.whole("throughput", received, labels)
    reading.whole("send_rate", sent, labels)
    for way in ("ierrors", "oerrors"):
        direction = {"direction": "received" if way == "ierrors" else "sent"}
        packets = number(part.get(way.replace("errors", "packets")))
        reading.whole(
            "errors", number(part.get(way)), {**labels, **direction}, exposure=packets
        )
    if not labels and received is not None and sent and received > 1.001 * sent:
        reading.doubt(
            "more-received",
            f"{received:.6g} bit/s received of {sent:.6g} sent: averages of different"
            " seconds, or other traffic",
            "compare ipackets and opackets",
        )


def _loss(
    sender: dict[str, object],
    receiver: dict[str, object],
    labels: dict[str, str],
    reading: Reading,
) -> None:
    sent, received = number(sender.get("opackets")), number(receiver.get("ipackets"))
    if sent is None or received is None:
        reading.note("loss-absent", "packet counters are missing")
    elif sent:
        reading.loss(sent - received, sent, labels)


def _facts(stats: dict[str, object], total: dict[str, object]) -> dict[str, object]:
    facts: dict[str, object] = {}
    for name in ("opackets", "ipackets", "obytes", "ibytes"):
        value = number(total.get(name))
        if value is not None:
            facts[name] = int(value)
    for name in ("cpu_util", "rx_drop_bps", "queue_full"):
        value = number(_part(stats, "global").get(name))
        if value is not None:
            facts[name] = value
    return facts
