"""Feed the loaders mutated files: they may refuse, and never crash, hang or invent.

Run: ``python benchmarks/fuzz.py --count 100000 --seed 1`` or ``--seconds 600``; with
``--atheris`` (``pip install atheris``) coverage guides the mutations instead; with
``--kinds`` every value of a JSON file (at most ``--count`` of each) is put out of its
kind, one after the other. The seeds are the golden files of the tests; the same numbers
give the same inputs.

Of each input it is demanded that nothing but ``CaptureError`` is raised, that it takes
less than 2 seconds of CPU, that every value is finite and of a known metric, that every
value of an interval lies in time, and that a file without a digit gives no value but
0. A failure is printed with what makes it again.
"""

import argparse
import copy
import json
import math
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from patchstudy import loaders
from patchstudy.errors import CaptureError
from patchstudy.metrics import metric
from patchstudy.records import Capture, RawFile

GOLDEN: Final = Path(__file__).parents[1] / "tests" / "golden" / "loaders"
#: CPU seconds that one input of at most ``LARGEST`` bytes may take.
SLOWEST_S: Final = 2.0
LARGEST: Final = 2**20

#: Pieces that break parsers: numbers, markup, escapes, and what JSON cannot be.
PIECES: Final = (
    b"1e999", b"-1e999", b"-nan", b"NaN", b"inf", b"-1", b"0", b"1e-400", b"",
    str(2**70).encode(), b"9" * 400, b"0x1f", b"1,5", b"1.5.2", b"--", b"null", b"{}",
    b"\0", b"\x1b[31m", "\u202e".encode(), b"<script>x</script>", b"\xff\xfe", b"\r",
    b'"', b"}", b"]", b",", b"\t\t\t", b"\n\n", b"%", b"+", b" " * 300,
)  # fmt: skip
#: What is put in the place of a value of JSON.
KINDS: Final = ({}, [], None, True, "x", -1, math.inf, 0)
_BEFORE_A_WORD: Final = re.compile(rb"[ ,:=\n\t/](?=.)", re.DOTALL)
_BEHIND_A_WORD: Final = re.compile(rb"[ ,:=\n\t/}\]]")
_DIGITS: Final = re.compile(rb"[0-9]+")
#: How fping shows a ping without an answer, which counts.
_LOST_PINGS: Final = re.compile(rb" : -")


class TooSlowError(BaseException):
    """Raised where an input takes far too long; no loader may catch it."""


@dataclass(slots=True)
class Tally:
    """What became of the inputs of one tool."""

    inputs: int = 0
    refused: int = 0
    slowest_s: float = 0.0
    failures: list[str] = field(default_factory=list)


def seeds(tool: str = "") -> list[Path]:
    """Return the golden raw files, of one tool or of all."""
    return [
        path
        for path in sorted(GOLDEN.glob(f"{tool or '*'}/*"))
        if path.is_file() and not path.name.endswith(("expected.json", "SOURCE"))
    ]


# ---- mutations ----------------------------------------------------------------------


def flipped(data: bytes, dice: random.Random) -> bytes:
    """Change a few bytes."""
    changed = bytearray(data)
    for _ in range(dice.randint(1, 8)):
        if changed:
            changed[dice.randrange(len(changed))] = dice.randrange(256)
    return bytes(changed)


def cut(data: bytes, dice: random.Random) -> bytes:
    """Cut the end off, or a piece out of the middle."""
    start, end = sorted(dice.randrange(len(data) + 1) for _ in range(2))
    return data[:start] if dice.random() < 0.5 else data[:start] + data[end:]


def numbers(data: bytes, dice: random.Random) -> bytes:
    """Put another piece in the place of a word between blanks or signs."""
    for _ in range(dice.randint(1, 4)):
        before = _BEFORE_A_WORD.search(data, dice.randrange(len(data) + 1))
        if before is None:
            continue
        start = before.end()
        found = _BEHIND_A_WORD.search(data, start)
        end = found.start() if found else len(data)
        data = data[:start] + dice.choice(PIECES) + data[end:]
    return data


def lines(data: bytes, dice: random.Random) -> bytes:
    """Double, drop, swap or join lines."""
    rows = data.split(b"\n")
    for _ in range(dice.randint(1, 4)):
        at, to = dice.randrange(len(rows)), dice.randrange(len(rows))
        kind = dice.randrange(4)
        if kind == 0:
            rows.insert(to, rows[at])
        elif kind == 1:
            rows[at], rows[to] = rows[to], rows[at]
        elif kind == 2 and len(rows) > 1:
            del rows[at]
        else:
            rows[at] += rows[to]
    return b"\n".join(rows)


def inserted(data: bytes, dice: random.Random) -> bytes:
    """Put a piece anywhere, or thousands of them."""
    at, times = dice.randrange(len(data) + 1), dice.choice((1, 1, 1, 50, 5000))
    return data[:at] + dice.choice(PIECES) * times + data[at:]


def nested(data: bytes, dice: random.Random) -> bytes:
    """Put a value into many brackets."""
    at, deep = dice.randrange(len(data) + 1), dice.choice((10, 1000, 100_000))
    left, right = dice.choice(((b"[", b"]"), (b'{"a":', b"}")))
    return data[:at] + left * deep + right * deep + data[at:]


def encoded(data: bytes, dice: random.Random) -> bytes:
    """Write it in another encoding, or put a mark of another one before it."""
    text = data.decode("utf-8", "replace")
    kind = dice.randrange(4)
    if kind == 0:
        return text.encode("utf-16")
    if kind == 1:
        return b"\xef\xbb\xbf" + data
    if kind == 2:
        return text.replace("\n", "\r\n").encode()
    return text.encode("latin-1", "replace")


def stretched(data: bytes, dice: random.Random) -> bytes:
    """Make one line very long with what stands in it."""
    rows = data.split(b"\n")
    at = dice.randrange(len(rows))
    found = rows[at].split()[:20]
    some = b" ".join(found[dice.randrange(len(found) + 1) :][: dice.randint(1, 4)])
    words = [b" ", b"1", b"a", b"1.", b"- ", *found, some + b" ", rows[at] + b" "]
    word, place = dice.choice(words), dice.randrange(len(rows[at]) + 1)
    times = dice.choice((100, 1000, 10_000, 200_000)) // len(word) + 1
    rows[at] = rows[at][:place] + word * times + rows[at][place:]
    return b"\n".join(rows)


def emptied(data: bytes, dice: random.Random) -> bytes:
    """Take out every digit: no value has a source then."""
    return _DIGITS.sub(dice.choice((b"", b"x", b"-")), data)


MUTATIONS: Final[tuple[Callable[[bytes, random.Random], bytes], ...]] = (
    flipped, flipped, cut, cut, numbers, numbers, numbers, lines, lines, inserted,
    encoded, nested, stretched, emptied,
)  # fmt: skip


def mutated(data: bytes, dice: random.Random) -> bytes:
    """Apply one to three mutations; at most ``LARGEST`` bytes come out."""
    for _ in range(dice.randint(1, 3)):
        data = dice.choice(MUTATIONS)(data, dice)[:LARGEST]
    return data


# ---- JSON of other kinds ------------------------------------------------------------


def of_other_kinds(paths: list[Path], most: int) -> Iterator[tuple[str, bytes]]:
    """Yield JSON files with one value put out of its kind, for up to so many values."""
    for path in paths:
        documents = _documents(path)
        for place in islice(_places(documents), most):
            for value in KINDS:
                changed = copy.deepcopy(documents)
                inner = changed
                for key in place[:-1]:
                    inner = inner[key]
                inner[place[-1]] = value
                yield path.name, "\n".join(map(json.dumps, changed)).encode()


def _documents(path: Path) -> list[Any]:
    """Return the JSON of a file, or of each of its lines; none where it is no JSON."""
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        return [json.loads(text)]
    except ValueError:
        pass
    try:
        lines = text.splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]
    except ValueError:
        return []


def _places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """Yield where a value stands and all in it; of a list the first two."""
    if before:
        yield before
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _places(one, (*before, key))
    elif isinstance(value, list):
        for at, one in enumerate(value[:2]):
            yield from _places(one, (*before, at))


# ---- demands ------------------------------------------------------------------------


def wrong(capture: Capture, data: bytes) -> Iterator[str]:
    """Say what a capture of these bytes may not hold."""
    sourceless = not (_DIGITS.search(data) or _LOST_PINGS.search(data))
    for one in capture.measurements:
        # a table without rows may tell 0, and a line is an event without a digit in it
        if sourceless and one.value and not one.metric.startswith("event:"):
            yield f"{one.metric} has no source: no digit"
        metric(one.metric)  # raises for an unknown name
        for value in (one.value, one.exposure, one.resolution):
            if value is not None and not math.isfinite(value):
                yield f"{one.metric} is {value}"
        if (one.start_s is None) is not (one.end_s is None):
            yield f"{one.metric} has half an interval"
        span = (one.start_s or 0.0, 1.0 if one.end_s is None else one.end_s)
        if not (-math.inf < span[0] < span[1] < math.inf):
            yield f"{one.metric} lies nowhere in time: {span}"
    loaders.as_json(capture)


def tried(name: str, data: bytes, tally: Tally) -> str:
    """Load one input; return what is wrong, or nothing."""
    raw = RawFile.of(Path(name), data)
    tally.inputs += 1
    start = time.process_time()
    problem = ""
    signal.setitimer(signal.ITIMER_VIRTUAL, 2 * SLOWEST_S)
    try:
        problem = next(wrong(loaders.load_raw(raw), data), "")
    except CaptureError as error:
        tally.refused += 1
        if not str(error).isprintable():
            problem = "the error holds what cannot be printed"
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"[:200]
    except TooSlowError:
        problem = "stopped: it takes too long"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    spent = time.process_time() - start
    tally.slowest_s = max(tally.slowest_s, spent)
    return problem or (f"took {spent:.1f} s" if spent > SLOWEST_S else "")


def inputs(paths: list[Path], seed: int) -> Iterator[tuple[Path, int, bytes]]:
    """Yield mutated files without end, each with the number that makes it again."""
    contents = {path: path.read_bytes() for path in paths}
    number = 0
    while True:
        path = paths[number % len(paths)]
        dice = random.Random(f"{seed}/{path.parent.name}/{path.name}/{number}")
        yield path, number, mutated(contents[path], dice)
        number += 1


def run(
    paths: list[Path], seed: int, *, count: int, seconds: float = math.inf
) -> dict[str, Tally]:
    """Try so many inputs, or for so long; return a tally by tool."""
    signal.signal(signal.SIGVTALRM, _too_slow)
    tallies: dict[str, Tally] = {}
    end = time.monotonic() + seconds
    for path, number, data in inputs(paths, seed):
        if number >= count or time.monotonic() > end:
            return tallies
        tally = tallies.setdefault(path.parent.name, Tally())
        if problem := tried(path.name, data, tally):
            told = f"{path.parent.name}/{path.name} --seed {seed}, input {number}"
            tally.failures.append(f"{told}: {problem}")
    return tallies


def other_kinds(paths: list[Path], *, most: int) -> list[str]:
    """Try JSON files with one value out of its kind; return what is wrong."""
    signal.signal(signal.SIGVTALRM, _too_slow)
    found = {
        f"{name}: {problem}": None
        for name, data in of_other_kinds(paths, most)
        if (problem := tried(name, data, Tally()))
    }
    return list(found)


def _too_slow(*_: object) -> None:
    raise TooSlowError


def table(tallies: dict[str, Tally]) -> str:
    """Write the tallies, and every failure below."""
    rows = [f"{'tool':<18}{'inputs':>10}{'refused':>10}{'slowest':>10}{'failed':>8}"]
    rows += [
        f"{tool:<18}{one.inputs:>10}{one.refused:>10}{one.slowest_s:>8.2f} s"
        f"{len(one.failures):>8}"
        for tool, one in sorted(tallies.items())
    ]
    failures = [line for one in tallies.values() for line in one.failures]
    total = sum(one.inputs for one in tallies.values())
    return "\n".join([*rows, f"{total} inputs, {len(failures)} failed", *failures])


def guided(paths: list[Path], seconds: float) -> None:
    """Let coverage guide the mutations; stops at the first failure."""
    import atheris

    signal.signal(signal.SIGVTALRM, _too_slow)
    atheris.instrument_all()

    def once(data: bytes) -> None:
        if problem := tried("fuzz", data, Tally()):
            raise RuntimeError(problem)

    corpus = sorted({str(path.parent) for path in paths})
    limits = ["-max_len=65536", "-timeout=10"]
    if math.isfinite(seconds):
        limits.append(f"-max_total_time={seconds:.0f}")
    with tempfile.TemporaryDirectory() as found:  # never among the golden files
        atheris.Setup([sys.argv[0], *limits, found, *corpus], once)
        atheris.Fuzz()


def main() -> int:
    """Run as told; return 1 where anything failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tool", default="", help="files of one tool only")
    parser.add_argument("--atheris", action="store_true")
    parser.add_argument(
        "--kinds", action="store_true", help="JSON values of other kinds"
    )
    told = parser.parse_args()
    paths = seeds(told.tool)
    if told.kinds:
        problems = other_kinds(paths, most=told.count)
        print("\n".join(problems) or "no value of another kind did any harm")
        return 1 if problems else 0
    if told.atheris:
        guided(paths, told.seconds)
        return 0
    tallies = run(paths, told.seed, count=told.count, seconds=told.seconds)
    print(table(tallies))
    return 1 if any(one.failures for one in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
