"""Both variants' call stacks merged into one tree, for a differential flame graph.

A frame is as wide as the mean of its shares in both profiles. Means add up from the
leaves to the root, as shares do, and a path that is gone keeps half of its width: a
graph of the patched profile alone would not show what the patch removed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import pandas as pd

from patchstudy.origins import bare, origin
from patchstudy.profiles import Cell, ProfileRun, cells
from patchstudy.records import Stack
from patchstudy.study import Study

FLAME_COLUMNS: Final = (
    "device", "workload", "event", "depth", "start", "width", "symbol", "origin",
    "baseline", "patched", "change",
)  # fmt: skip
#: Frames narrower than this share of the graph are not drawn.
NARROWEST: Final = 0.002
#: Frames above this depth are not drawn.
DEEPEST: Final = 64


@dataclass(slots=True, kw_only=True)
class _Node:
    """A frame below its callers, with its share in each variant."""

    origin: str
    shares: list[float] = field(default_factory=lambda: [0.0, 0.0])
    children: dict[str, "_Node"] = field(default_factory=dict)

    @property
    def width(self) -> float:
        return sum(self.shares) / 2


def flames(study: Study) -> pd.DataFrame:
    """One row per frame of the merged call trees, callers before what they call.

    Returns
    -------
    pandas.DataFrame
        Columns ``FLAME_COLUMNS``: ``start`` and ``width`` as parts of the whole graph,
        ``baseline`` and ``patched`` the inclusive shares of this call path, between 0
        and 1. Children stand in the order of their names. Frames below ``NARROWEST``
        and above ``DEEPEST`` are left out.
    """
    judged = (study.design.baseline, study.design.patched[0])
    rows = [
        {
            "device": cell.device,
            "workload": cell.workload,
            "event": cell.event,
            "depth": depth,
            "start": start,
            "width": node.width,
            "symbol": name,
            "origin": node.origin,
            "baseline": node.shares[0],
            "patched": node.shares[1],
            "change": node.shares[1] - node.shares[0],
        }
        for cell in cells(study)
        if all(one in cell.profiles for one in judged)
        for depth, start, name, node in _frames(_tree(cell, judged), 0, 0.0)
    ]
    return pd.DataFrame(rows, columns=list(FLAME_COLUMNS))


def _tree(cell: Cell, judged: Sequence[str]) -> dict[str, _Node]:
    """The roots; of several profiles of a variant the mean, each with one weight."""
    roots: dict[str, _Node] = {}
    for side, variant in enumerate(judged):
        found = cell.profiles[variant]
        for one in found:
            _add(roots, one, side, len(found))
    return roots


def _add(roots: dict[str, _Node], run: ProfileRun, side: int, runs: int) -> None:
    total = run.profile.total * runs
    for stack in run.profile.stacks:
        here = roots
        for name, where in _path(stack):
            node = here.get(name)
            if node is None:
                node = here[name] = _Node(origin=where)
            node.shares[side] += stack.weight / total
            here = node.children


def _path(stack: Stack) -> Iterator[tuple[str, str]]:
    """Yield the name of the thread, where it is known, and every frame.

    Frames without a symbol that follow each other tell no more than one of them.
    """
    if stack.comm is not None:
        yield stack.comm, "thread"
    last = ""
    for at, frame in enumerate(stack.frames):
        if not (frame == last == "[unknown]"):
            yield bare(frame), origin(stack, at)
        last = frame


def _frames(
    nodes: dict[str, _Node], depth: int, start: float
) -> Iterator[tuple[int, float, str, _Node]]:
    for name, node in sorted(nodes.items()):
        if node.width >= NARROWEST and depth < DEEPEST:
            yield depth, start, name, node
            yield from _frames(node.children, depth + 1, start)
        start += node.width
