"""Look for regular expressions that a hostile line makes slow.

Every pattern of the program, most of them of loaders, is tried on lines made for it:
what it wants up to one of its repetitions, that repetition many times, and an end that
it does not want. Twice the length must take about twice the time; a pattern whose time
grows with the square, or worse, is told.

    python benchmarks/patterns.py              # half a minute
    python benchmarks/patterns.py --length 16000
"""

import argparse
import importlib
import pkgutil
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from re import _constants as ops  # pyright: ignore[reportAttributeAccessIssue]
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue]
from typing import Any, Final, TypeAlias

import patchstudy

#: A part of a parsed pattern, as Python's own parser gives it.
Code: TypeAlias = Any
#: Ends of a line that most patterns do not want.
ENDS: Final = ("\0", "", " x", "0")
#: CPU seconds below which a growth is noise, and after which a try is given up.
SHORT_S, LONG_S = 0.05, 3.0
#: Time at twice the length, as a multiple: 2 is linear, 4 is quadratic.
GROWTH: Final = 3.0
REPEATS: Final = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)
CATEGORIES: Final = {
    ops.CATEGORY_DIGIT: "0", ops.CATEGORY_NOT_DIGIT: "a", ops.CATEGORY_SPACE: " ",
    ops.CATEGORY_NOT_SPACE: "a", ops.CATEGORY_WORD: "a", ops.CATEGORY_NOT_WORD: " ",
}  # fmt: skip
#: Of what holds another pattern, that pattern; of branches the first.
INSIDE: Final[dict[Code, Callable[[Code], Code]]] = {
    ops.BRANCH: lambda value: value[1][0],
    ops.SUBPATTERN: lambda value: value[3],
    ops.ATOMIC_GROUP: lambda value: value,
}
LETTERS: Final = " a0.,:/=-[(\t\n\"'%_x"


class _TooSlowError(Exception):
    """Raised where a try takes far too long."""


def patterns() -> dict[str, re.Pattern[Any]]:
    """Return every compiled pattern of the program, by module and name."""
    found: dict[str, re.Pattern[Any]] = {}
    for one in pkgutil.walk_packages(patchstudy.__path__, "patchstudy."):
        if one.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(one.name)).items():
            if isinstance(value, re.Pattern) and value not in found.values():
                found[f"{one.name.removeprefix('patchstudy.')}.{name}"] = value
    return found


# ---- lines that a pattern may find hard ---------------------------------------------


def letters(choice: list[tuple[Code, Code]]) -> list[str]:
    """Return letters of a class: one that stands in it, a few of a negated one."""
    negated = bool(choice) and choice[0][0] is ops.NEGATE
    text = "".join(_of(op, value) for op, value in choice if op is not ops.NEGATE)
    if not negated:
        return list(dict.fromkeys(text)) or ["a"]
    without = set(text)
    return [one for one in LETTERS if one not in without][:4]


def _of(op: Code, value: Code) -> str:
    if op is ops.LITERAL:
        return chr(value)
    if op is ops.RANGE:
        return chr(value[0])
    return CATEGORIES.get(value, "a")


def example(parsed: Code, *, optional: bool) -> str:
    """Return a text that the parsed pattern wants, with or without what it need not."""
    return "".join(_example(op, value, optional=optional) for op, value in parsed)


def _example(op: Code, value: Code, *, optional: bool) -> str:
    """Return the example of a part; none of a place or of a look ahead or behind."""
    if op in REPEATS:
        return example(value[2], optional=optional) * max(value[0], int(optional))
    if op in INSIDE:
        return example(INSIDE[op](value), optional=optional)
    if op is ops.IN:
        return letters(value)[0]
    if op is ops.NOT_LITERAL:
        return "b" if value == ord("a") else "a"
    return chr(value) if op is ops.LITERAL else "a" * (op is ops.ANY)


def hard(parsed: Code, length: int, before: str = "") -> Iterator[str]:
    """Yield what comes up to a repetition and it very often, for each repetition."""
    for optional in (False, True):
        done = before
        for op, value in parsed:
            if op in REPEATS:
                if value[1] > 1000:
                    yield from (done + one for one in _often(value[2], length))
                yield from hard(value[2], length, done)
            elif op is ops.BRANCH:
                for branch in value[1]:
                    yield from hard(branch, length, done)
            elif op is ops.SUBPATTERN:
                yield from hard(value[3], length, done)
            done += _example(op, value, optional=optional)


def _often(body: Code, length: int) -> Iterator[str]:
    """Yield a repetition's body many times, in each letter of a class."""
    one = body[0] if len(body) == 1 else (None, None)
    units = {
        ops.IN: lambda: letters(one[1]),
        ops.ANY: lambda: list(" a0"),
        ops.NOT_LITERAL: lambda: [x for x in " a0" if ord(x) != one[1]],
    }.get(one[0], lambda: [example(body, optional=True)])()
    for unit in units:
        if unit:
            yield unit * (length // len(unit))


def lines(pattern: re.Pattern[Any], length: int) -> list[Code]:
    """Return the lines that may be hard for a pattern, in its kind of text."""
    source = pattern.pattern
    flags = pattern.flags & ~re.DEBUG
    parsed = parser.parse(source, flags)
    made = dict.fromkeys(one + end for one in hard(parsed, length) for end in ENDS)
    if isinstance(source, bytes):
        return [one.encode("latin-1", "replace") for one in made]
    return list(made)


# ---- times --------------------------------------------------------------------------


def spent(match: Callable[..., object], line: str | bytes) -> float:
    """Return the CPU seconds of one try, at most ``LONG_S``."""
    signal.setitimer(signal.ITIMER_VIRTUAL, LONG_S)
    start = time.process_time()
    try:
        match(line)
    except _TooSlowError:
        return LONG_S
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.process_time() - start


def searched(name: str) -> bool:
    """Say whether the program looks for a pattern anywhere in a text."""
    module, _, variable = name.rpartition(".")
    source = Path(str(sys.modules[f"patchstudy.{module}"].__file__)).read_text("utf-8")
    uses = rf"\b{variable}\.(?:search|finditer|findall|sub|subn|split)\b"
    return re.search(uses, source) is not None


def slow(pattern: re.Pattern[Any], length: int, *, anywhere: bool = False) -> str:
    """Return how a pattern is slow and on what, or nothing."""
    longer = lines(pattern, 2 * length)
    ways = (pattern.fullmatch, pattern.match, *([pattern.search] if anywhere else []))
    for at, line in enumerate(longer):
        for match in ways:
            once = spent(match, line)
            if once < SHORT_S:
                continue
            half = min(spent(match, lines(pattern, length)[at]) for _ in range(2))
            if once >= LONG_S or min(once, spent(match, line)) > GROWTH * half:
                shown = repr(line[:40])
                return f"{match.__name__}: {half:.2f} s, then {once:.2f} s: {shown}..."
    return ""


def all_slow(tried: dict[str, re.Pattern[Any]], length: int) -> dict[str, str]:
    """Return the slow ones of named patterns, with how and on what."""
    signal.signal(signal.SIGVTALRM, too_slow)
    found = {
        name: slow(one, length, anywhere=searched(name)) for name, one in tried.items()
    }
    return {name: why for name, why in found.items() if why}


def too_slow(*_: object) -> None:
    """Stop a try."""
    raise _TooSlowError


def main() -> int:
    """Try every pattern; return 1 where one is slow."""
    parser_ = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser_.add_argument("--length", type=int, default=16_000)
    length = parser_.parse_args().length
    tried = patterns()
    found = all_slow(tried, length)
    for name, why in sorted(found.items()):
        print(f"{name}: {why}")
    print(f"{len(tried)} patterns, {len(found)} slow")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
