"""Where the runs of a plan go, and in which order the variants take turns."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from patchstudy.study import Design


class Order(StrEnum):
    """In which order the variants take turns within a block."""

    ABBA = "abba"
    RANDOM = "random"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One run of the schedule.

    Attributes
    ----------
    position
        Place in time, from 1.
    folder
        Where its raw files go, relative to the study; ``{workload}`` and ``{rest}``
        are left where the layout has them in the name of a file that tells the run.
    """

    position: int
    block: str
    variant: str
    run: str
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How much is measured on one device.

    Attributes
    ----------
    blocks
        Each holds ``units`` units of every variant, each of ``runs`` runs.
    """

    unit: str
    blocks: int
    units: int
    runs: int


def schedule(
    design: Design, device: str, shape: Shape, *, order: Order, seed: int
) -> tuple[Slot, ...]:
    """List the runs of one device in the order in which to measure them.

    The same seed gives the same order on every machine: it comes from sha256, not from
    the random numbers of a library.
    """
    taken: Counter[str] = Counter()
    slots: list[Slot] = []
    turns = list(_turns(design.variants, shape, order, f"{seed}/{device}"))
    digits = max(2, len(str(len(turns) if shape.unit != "run" else shape.blocks)))
    for unit, (number, variant) in enumerate(turns, start=1):
        block = f"{number:0{digits}}"
        names = _names(design, shape, block=block, unit=f"{unit:0{digits}}")
        names |= {"device": device, "variant": variant}
        for _ in range(shape.runs):
            place = _folder(design.layout, names | {"run": ""})
            taken[place] += 1
            run = f"{taken[place]:02}"
            slots.append(
                Slot(
                    position=len(slots) + 1,
                    block=block,
                    variant=variant,
                    run=run,
                    folder=_folder(design.layout, names | {"run": run}),
                )
            )
    return tuple(slots)


def _turns(
    variants: Sequence[str], shape: Shape, order: Order, seed: str
) -> Iterator[tuple[int, str]]:
    """Yield the block and the variant of every unit, in time.

    ABBA: each block is a palindrome, and the next one begins with the next variant, so
    that a linear drift cancels in every block and a curved one over two. Random: every
    block holds the same units in an order of its own.
    """
    start = int(_digest(seed), 16)
    for block in range(1, shape.blocks + 1):
        if order is Order.ABBA:
            at = (start + block) % len(variants)
            turn = [*variants[at:], *variants[:at]]
            whole = (turn + turn[::-1]) * (shape.units // 2)
        else:
            whole = _shuffled(list(variants) * shape.units, f"{seed}/{block}")
        yield from ((block, variant) for variant in whole)


def _shuffled(names: Sequence[str], seed: str) -> list[str]:
    numbers = sorted(range(len(names)), key=lambda at: _digest(f"{seed}/{at}"))
    return [names[number] for number in numbers]


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _names(design: Design, shape: Shape, *, block: str, unit: str) -> dict[str, str]:
    """Factors of a unit; boots that run one variant each are numbered in time."""
    boot = block if shape.unit == "run" else unit
    names = {"purpose": "run", "block": block, "boot": boot, "build": boot}
    return names | ({design.block: block} if design.block else {})


def _folder(layout: str, names: dict[str, str]) -> str:
    """Fill in a layout, without the file's name unless that tells the run."""
    filled = re.sub(r"{(\w+)}", lambda match: names.get(match[1], match[0]), layout)
    folder, _, _ = filled.rpartition("/")
    last = re.findall(r"{(\w+)}", layout.rpartition("/")[2])
    return filled if names.keys() & set(last) or not folder else folder
