"""Read ``perf diff``: the share of every symbol in a recording, and its change.

``profile_share:<symbol>``, self, with the label ``file``: ``baseline`` as printed, and
``1``, ``2`` ... where the change is a difference of shares (Delta, Delta Abs); a ratio
or a weighted difference of periods is not read. A blank cell means that the symbol is
not in that recording (or below what is printed): it is absent, not 0. After ``-b``
shares are of the rows that both have, and the file does not say so; nothing tells how
many samples there were. The two profiles say more than their difference: a caveat.
"""

import re
from typing import Final

from patchstudy.loaders import perf_table
from patchstudy.loaders.perf_table import Section, percents, symbol
from patchstudy.loaders.reading import Reading
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, RawFile

_DELTA: Final = re.compile(r"Delta(?: Abs)?(?:/(\d+))?")
_PLACES: Final = ("Command", "Shared Object")
_RESOLUTION: Final = 1e-4


def sniff(raw: RawFile) -> bool:
    """Say whether a line names the columns of a difference."""
    return "# Event '" in raw.head and perf_table.named(raw, ("Baseline",))


def load(raw: RawFile) -> Capture:
    """Read the shares; ``facts`` name the symbols that are gone or new."""
    out = Reading()
    found = list(perf_table.sections(raw))
    gone, new = [], []
    for section in found:
        one_gone, one_new = _section(out, section)
        gone += one_gone
        new += one_new
    text = (
        "a difference of two profiles without their numbers of samples; a symbol"
        " that is absent may be below what is printed"
    )
    out.doubt("no-profiles", text, "Give the two profiles, as perf script.")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="perf_diff",
        measurements=tuple(out.measurements),
        facts={
            "rows": sum(len(one.rows) for one in found),
            "gone": sorted(set(gone)),
            "new": sorted(set(new)),
        },
        caveats=(*out.caveats, *line_end(raw)),
    )


def _section(out: Reading, section: Section) -> tuple[list[str], list[str]]:
    """Add the shares of one event; return the symbols that are gone and new."""
    deltas = [
        (name, found[1] or "1")
        for name in section.columns
        if (found := _DELTA.fullmatch(name))
    ]
    first = next((one for one in section.columns if one.startswith("Baseline")), "")
    gone: list[str] = []
    new: list[str] = []
    shares: dict[tuple[str, str], float] = {}
    for row in section.rows:
        name = _name(section, row)
        base = percents(section.cell(row, first))[:1]
        changes = {
            number: percents(section.cell(row, column))[:1] for column, number in deltas
        }
        if not base:
            new.append(name)
        elif deltas and not all(changes.values()):
            gone.append(name)
        told = {"baseline": base}
        told |= {number: [sum(base + one)] for number, one in changes.items() if one}
        for number, values in told.items():
            for value in values:
                shares[name, number] = shares.get((name, number), 0.0) + value
    for (name, number), share in shares.items():
        if not name:
            out.note("no-symbol", "rows without a symbol are left out")
            continue
        labels = {"share": "self", "event": section.event, "file": number}
        value = min(max(share, 0.0), 1.0)
        out.whole(f"profile_share:{name}", value, labels, resolution=_RESOLUTION)
    return gone, new


def _name(section: Section, row: tuple[str, ...]) -> str:
    """Return the symbol of a row; the thread and object where there is none."""
    places = filter(None, (section.cell(row, one) for one in _PLACES))
    return symbol(section.cell(row, "Symbol")) or " ".join(places)
