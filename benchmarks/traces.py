"""Measure how fast large traces are read, as ratios within one run.

Run: ``python benchmarks/traces.py`` (``--perf FILE``, ``--ftrace FILE`` take real large
files; else the raw files of the tests are repeated to 200 MB in a temporary folder).
For each of perf script and ftrace events it prints

- the MB per CPU-second of ``loaders.load``, all its processes and the digest included;
- that of a plain Python loop over the same file, which counts the same events;
- the ratio, and what it means against the tools that were timed beside such a loop:
  stackcollapse-perf.pl read 12.6 MB per CPU-second where a loop read 52.8, TRAPpy 1.7
  where a loop read 66.3 (one machine, one run);
- the peak memory of a process, and the wall time.

Then what it saves to keep a capture (``loaders.parsed``), also of simulated stacks that
all differ.

``--stackcollapse FILE`` runs that Perl script of FlameGraph on the same perf script,
and on the stacks that all differ, where nothing that was read before helps; it
prints its own MB per CPU-second and the true ratios.
"""

import argparse
import os
import random
import resource
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from patchstudy import loaders
from patchstudy.variables import PARSED

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "loaders"
SIZE = 200_000_000
#: Other tool, its MB per CPU-second, and that of the plain loop beside it.
TIMED = {"perf": ("stackcollapse-perf.pl", 12.6, 52.8), "ftrace": ("TRAPpy", 1.7, 66.3)}


def cpu_s(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU time of a call, that of its processes included, and its result."""
    before = os.times()
    result = work()
    spent = sum(os.times()[:4]) - sum(before[:4])
    return spent, result


def repeated(path: Path, source: str, size: int = SIZE) -> Path:
    """Write the lines of a raw file over and over; its header once."""
    lines = (GOLDEN / source).read_bytes().splitlines(keepends=True)
    header = b"".join(one for one in lines if one.startswith(b"#"))
    body = b"".join(one for one in lines if not one.startswith(b"#"))
    with path.open("wb") as file:  # the peak memory is to be that of the loader
        file.write(header)
        for _ in range(size // len(body)):
            file.write(body)
    return path


def different(path: Path) -> Path:
    """Write simulated samples whose stacks all differ, of 3,000 functions."""
    chosen = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        for at in range(60_000):
            file.write(f"iperf3  {at % 7} [000] {at / 4e3:.6f}:  250000 cpu-clock: \n")
            for _ in range(20):
                one, offset = chosen.randrange(3000), 16 * chosen.randrange(16)
                address = 0xFFFFFFFF81000000 + one * 4096 + offset
                symbol = f"function_number_{one}+0x{offset:x}"
                file.write(f"\t{address:16x} {symbol} ([kernel.kallsyms])\n")
            file.write("\n")
    return path


def plain_perf(path: Path) -> int:
    """Count samples, and stacks that hold each symbol, in a loop."""
    inclusive: Counter[str] = Counter()
    seen: set[str] = set()
    samples = 0
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if line[0] == "\t":
                seen.add(line.split(None, 2)[1].split("+")[0])
            elif line == "\n":
                inclusive.update(seen)
                seen.clear()
            else:
                samples += 1
    return samples


def plain_ftrace(path: Path) -> int:
    """Count events, and the bytes that every call site was given, in a loop."""
    events: Counter[str] = Counter()
    sites: Counter[str] = Counter()
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            start = line.find(": ")
            if start < 0 or line[0] == "#":
                continue
            events[line[start + 2 : line.find(":", start + 2)]] += 1
            site = line.find("call_site=")
            if site >= 0:
                given = line.find("bytes_alloc=") + 12
                size = int(line[given : line.find(" ", given)])
                sites[line[site + 10 : line.find("+", site)]] += size
    return sum(events.values())


def measure(kind: str, path: Path, plainly: Callable[[Path], int]) -> str:
    """Compare the loader with a plain loop on one file."""
    size = path.stat().st_size / 1e6
    loop, count = cpu_s(lambda: plainly(path))
    start = time.monotonic()
    ours, capture = cpu_s(lambda: loaders.load(path))
    wall = time.monotonic() - start
    name = "samples" if kind == "perf" else "events"
    assert capture.facts[name] == count, f"{capture.facts[name]} {name}, not {count}"
    tool, its, beside = TIMED[kind]
    users = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak = max(resource.getrusage(one).ru_maxrss for one in users) / 1024
    return (
        f"{kind}: {size:.0f} MB, {count} {name}: {size / ours:.0f} MB per CPU-second,"
        f" a plain loop {size / loop:.0f}, ratio {loop / ours:.2f}: {tool} x"
        f" {loop / ours * beside / its:.1f}; peak {peak:.0f} MiB, {wall:.1f} s"
    )


def against(script: Path, path: Path) -> str:
    """Compare the loader with stackcollapse-perf.pl itself on one file."""
    size = path.stat().st_size / 1e6
    ours, _capture = cpu_s(lambda: loaders.load(path))
    command = ["perl", str(script), str(path)]
    its, _done = cpu_s(lambda: subprocess.run(command, check=True, capture_output=True))
    return (
        f"perf: {size / ours:.0f} MB per CPU-second, {script.name} {size / its:.1f}:"
        f" x {its / ours:.1f}"
    )


def kept(path: Path) -> str:
    """Compare reading a file for the second time with the first time."""
    first, capture = cpu_s(lambda: loaders.load(path))
    again, found = cpu_s(lambda: loaders.load(path))
    assert found == capture
    return (
        f"{path.name}: {first:.2f} CPU s, kept and read again {again:.2f}:"
        f" x {first / again:.1f}"
    )


def main() -> int:
    """Print one line a kind of trace."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--perf", type=Path, help="a large text of perf script")
    parser.add_argument("--stackcollapse", type=Path, help="stackcollapse-perf.pl")
    parser.add_argument("--ftrace", type=Path, help="a large text of ftrace events")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        perf = told.perf or repeated(
            Path(folder) / "perf", "perf_script/cap-multi-events.txt"
        )
        print(measure("perf", perf, plain_perf), flush=True)
        if told.stackcollapse:
            print(against(told.stackcollapse, perf), flush=True)
        ftrace = told.ftrace or repeated(
            Path(folder) / "ftrace", "ftrace/cap-kmalloc-before.txt"
        )
        print(measure("ftrace", ftrace, plain_ftrace), flush=True)
        odd = different(Path(folder) / "different")
        if told.stackcollapse:  # late: it would raise the peak of the others
            print("all differ:", against(told.stackcollapse, odd), flush=True)
        os.environ[PARSED] = folder
        for one in (perf, ftrace, odd):
            print(kept(one), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
