"""Read /proc/cpuinfo: the CPUs that are online, as facts.

``key : value`` lines in the words of each architecture, on most a block a CPU that
begins with ``processor`` (s390x: ``processor 0: ...`` lines). Facts:
``number_of_cpus``, where the CPUs are told one by one, and ``cpuinfo`` with what all
blocks agree in; what differs (``cpu MHz``, ``core id``) is left out.
"""

import re

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import head_lines, lines
from patchstudy.records import Capture, RawFile

_ROW = re.compile(r"\s*+([\w()/.-]++(?: ++[\w()/.-]++)*+)\s*+:(?:\s(.*))?")
_KNOWN = re.compile(
    r"^(?:(?:processor|cpu model)\s*+|(?i:bogomips)[^:\n]*):", re.MULTILINE
)
_FIRST = re.compile(r"(?:processor|system type|vendor_id|machine|cpu|model name)\s*:")


def sniff(raw: RawFile) -> bool:
    """Say whether it begins as one of the architectures does."""
    top = head_lines(raw)[:1]
    return (
        bool(top)
        and _FIRST.match(top[0]) is not None
        and _KNOWN.search(raw.head) is not None
    )


def load(raw: RawFile) -> Capture:
    """Count the CPUs and read what they have in common."""
    values: dict[str, set[str]] = {}
    cpus = 0
    for number, line in lines(raw):
        match = _ROW.fullmatch(line)
        if match is None:
            problem = f"{line.strip()[:60]!r} is not a key, a colon and a value"
            raise CaptureError(raw.path, problem, where=str(number))
        key, value = match[1], (match[2] or "").strip()
        cpus += key == "processor" and value.isdecimal()
        values.setdefault(key, set()).add(value)
    agreed = {key: one for key, (one, *more) in values.items() if not more and one}
    number_of_cpus = {"number_of_cpus": cpus} if cpus else {}
    agreed.pop("processor", None)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="cpuinfo",
        facts={**number_of_cpus, "cpuinfo": agreed},
    )
