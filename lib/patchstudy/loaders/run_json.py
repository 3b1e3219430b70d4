"""Read ``run.json``: what a script noted of a run beside the tools' output.

A flat JSON object with keys such as ``purpose``, ``workload``, ``run``, ``position``,
``boot_id`` and ``started_at``; ``commands`` may be an object of command lines. All
keys become facts as they are; there are no measurements. ``started_at`` is a time in
ISO 8601 and counts only where it carries its zone.
"""

import json
from datetime import UTC, datetime

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import json_value
from patchstudy.records import Capture, Caveat, RawFile, Severity

_MAX_BYTES = 2**16
_SUBJECT = {"purpose", "workload"}
_PLACE = {"run", "position", "started_at"}


def sniff(raw: RawFile) -> bool:
    """Say whether it is a small flat object of what was run, and where in time."""
    small = len(raw.data) <= _MAX_BYTES and raw.head.lstrip().startswith("{")
    if not small or not any(f'"{key}"' in raw.text for key in _SUBJECT):
        return False
    try:
        value = json.loads(raw.text)
    except (ValueError, RecursionError):
        return False
    return bool(_SUBJECT & value.keys() and _PLACE & value.keys()) and _is_flat(value)


def load(raw: RawFile) -> Capture:
    """Read all keys into ``facts``, and the start of the run in UTC."""
    facts = json_value(raw)
    if not isinstance(facts, dict):
        raise CaptureError(raw.path, "not a JSON object of facts")
    started_at = _utc(facts.get("started_at"))
    doubtful = "started_at" in facts and started_at is None
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="run.json",
        started_at=started_at,
        facts=facts,
        caveats=(_no_clock(facts["started_at"]),) if doubtful else (),
    )


def _is_flat(value: dict[str, object]) -> bool:
    """Say whether all values are scalars, but for the object ``commands``."""
    return all(
        not isinstance(one, list | dict)
        or (key == "commands" and isinstance(one, dict))
        for key, one in value.items()
    )


def _utc(value: object) -> str | None:
    """Return a time that carries its zone in UTC with ``Z``; None for any other."""
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
        if time.tzinfo is None:
            return None
        utc = time.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return (
        utc.isoformat(timespec="milliseconds" if utc.microsecond else "seconds") + "Z"
    )


def _no_clock(value: object) -> Caveat:
    text = (
        f"started_at {value!r} is not a time with its zone; the order in time is open"
    )
    todo = "Write it as 2026-11-30T15:44:10Z."
    return Caveat(code="clock-unknown", severity=Severity.NOTE, text=text, todo=todo)
