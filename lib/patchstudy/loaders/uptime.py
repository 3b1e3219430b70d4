"""Read /proc/uptime, or the line of ``uptime``: seconds since boot.

Two decimal numbers (``uptime_proc_show`` in fs/proc/uptime.c): seconds since boot, time
of suspend included, and the idle seconds summed over all CPUs, which is not read. The
difference of two readings is the time that passed between them.

The line of ``uptime`` (procps, BusyBox) tells minutes and a local time without its
date: facts ``up_min`` and ``load_average`` (over 1, 5 and 15 minutes), and no reading.
So does ``uptime -p``, in weeks, days, hours and minutes; ``uptime -s`` tells the local
time of the boot without its zone: fact ``up_since``.
"""

import re

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, Measurement, RawFile

_LINE = re.compile(r"\s*(\d{1,12}\.\d\d) \d{1,15}\.\d\d\s*")


_COMMAND = re.compile(
    r"\s*\d{1,2}:\d\d(?::\d\d)? +up +(?:(?P<days>\d{1,5}) days?, +)?"
    r"(?:(?P<hours>\d{1,2}):(?P<minutes>\d\d)|(?P<min>\d{1,2}) min), +"
    r"(?:\d{1,4} users?, +)?load averages?: (?P<load>\d[\d., ]*+)\s*"
)
_PRETTY = re.compile(
    r"\s*up (?:(?P<years>\d{1,3}) years?(?:, |\s*$))?"
    r"(?:(?P<weeks>\d{1,3}) weeks?(?:, |\s*$))?"
    r"(?:(?P<days>\d{1,5}) days?(?:, |\s*$))?(?:(?P<hours>\d{1,2}) hours?(?:, |\s*$))?"
    r"(?:(?P<minutes>\d{1,2}) minutes?)?\s*"
)
_SINCE = re.compile(r"\s*(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_DAYS = {"years": 365, "weeks": 7, "days": 1}
_LOAD = re.compile(r"\d{1,6}[.,]\d\d")


def sniff(raw: RawFile) -> bool:
    """Say whether it is one line of two numbers, or that of the command."""
    patterns = (_LINE, _COMMAND, _PRETTY, _SINCE)
    return len(raw.data) < 200 and any(one.fullmatch(raw.head) for one in patterns)


def load(raw: RawFile) -> Capture:
    """Read the seconds since boot as a reading of ``event:uptime``."""
    if facts := _facts(raw.text):
        return Capture(path=raw.path, sha256=raw.digest, tool="uptime", facts=facts)
    match = _LINE.fullmatch(raw.text)
    if match is None:
        raise CaptureError(raw.path, "not two numbers with two decimals each")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="uptime",
        measurements=(
            Measurement(
                metric="event:uptime", value=float(match.group(1)), resolution=0.01
            ),
        ),
        cumulative=True,
        caveats=line_end(raw),
    )


def _facts(text: str) -> dict[str, object]:
    """Return what the command tells; nothing of the two numbers."""
    if command := _COMMAND.fullmatch(text):
        return _of_command(command)
    if since := _SINCE.fullmatch(text):
        return {"up_since": since[1]}
    pretty = _PRETTY.fullmatch(text)
    if pretty is None:
        return {}
    told = {name: int(value or 0) for name, value in pretty.groupdict().items()}
    days = sum(told[name] * length for name, length in _DAYS.items())
    return {"up_min": (days * 24 + told["hours"]) * 60 + told["minutes"]}


def _of_command(line: re.Match[str]) -> dict[str, object]:
    """Return minutes since boot and load averages."""
    days, hours = int(line["days"] or 0), int(line["hours"] or 0)
    minutes = int(line["minutes"] or line["min"])
    load = [float(one.replace(",", ".")) for one in _LOAD.findall(line["load"])]
    return {"up_min": (days * 24 + hours) * 60 + minutes, "load_average": load}
