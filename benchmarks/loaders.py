"""Measure how fast raw files are read, as ratios within one run.

Run: ``python benchmarks/loaders.py`` (needs the packages ``orjson`` and ``jc``; those
of the two that are missing are left out). Prints

- the CPU time of ``loaders.load`` of an iperf3 file over that of ``orjson.loads`` and
  building the rows of the same intervals in plain Python, from the same bytes;
- the CPU time of pickling the capture of that file, and of unpickling it, over that of
  loading it: what processes side by side would cost each file;
- the peak memory of ``patchstudy load --format parquet`` of 1,000 such files (500 MB,
  made of real interval records in a temporary folder, and removed);
- the CPU time of ``loaders.load`` over that of ``jc`` for texts of mpstat, nstat and
  ``ethtool -S``.

Each ratio is the median over rounds in which both sides take turns.
"""

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

from patchstudy import loaders
from patchstudy.errors import CaptureError

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "loaders"
IPERF3 = GOLDEN / "iperf3" / "v312-tcp-fwd.json"
#: Real files, jc's parser for them (None where it has none), and how often the part
#: behind the first lines is repeated, to make them as long as files of a whole run.
SYSTEM = (
    ("mpstat/cap-since-boot.txt", "mpstat", 1),
    ("mpstat/cap-fr_FR.txt", "mpstat", 1),
    ("mpstat/cap-ja_JP-PALL.txt", "mpstat", 1),
    ("mpstat/cap-de_DE-PALL.txt", "mpstat", 1),
    ("mpstat/cap-A.txt", "mpstat", 1),
    ("mpstat/cap-ja_JP-PALL.txt", "mpstat", 60),
    ("ethtool_settings/cap-veth-default.txt", "ethtool", 1),
    ("ethtool_s/cap-S-hr0-before.txt", "ethtool", 1),
    ("nstat/cap-delta.txt", None, 1),
)


def cpu_s(work: Callable[[], object]) -> float:
    """Return the CPU time of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def ratio(ours: Callable[[], object], other: Callable[[], object]) -> float:
    """Return CPU time of ours / other, median over rounds in which they take turns."""
    ours(), other()
    return median(cpu_s(ours) / cpu_s(other) for _ in range(101))


def long_run(size: int) -> bytes:
    """Return an iperf3 file of about so many bytes: real records, one after another."""
    document = json.loads(IPERF3.read_bytes())
    records = [json.dumps(one) for one in document["intervals"]]
    count = size * len(records) // len(json.dumps(document["intervals"], indent="\t"))
    document["intervals"] = list(moved(islice(cycle(records), count)))
    return json.dumps(document, indent="\t").encode()


def moved(records: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Yield the records, each beginning where the one before ended."""
    for at, record in enumerate(records):
        one = json.loads(record)
        for part in (one["sum"], *one["streams"]):
            part["start"], part["end"] = float(at), float(at + 1)
        yield one


def plainly(path: Path) -> list[dict[str, object]]:
    """Return the rows of ``listing.load_table``, with orjson and a loop."""
    import orjson

    document = orjson.loads(path.read_bytes())
    return [
        {
            "path": str(path),
            "tool": "iperf3",
            "metric": "send_rate" if one["sum"]["sender"] else "throughput",
            "labels": "",
            "start_s": float(one["sum"]["start"]),
            "end_s": float(one["sum"]["end"]),
            "value": one["sum"]["bytes"] * 8 / one["sum"]["seconds"],
            "unit": "bit/s",
            "exposure": None,
            "cumulative": False,
        }
        for one in document["intervals"]
        if not one["sum"]["omitted"]
    ]


def of_iperf3(folder: Path) -> str:
    """Compare one file of half a megabyte with orjson and plain Python."""
    path = folder / "one.json"
    path.write_bytes(long_run(500_000))
    found = ratio(lambda: loaders.load(path), lambda: plainly(path))
    rows = len(plainly(path))
    size = path.stat().st_size / 1e3
    return f"iperf3 JSON, {size:.0f} kB, {rows} intervals: {found:.2f} x the CPU time"


def of_processes(folder: Path) -> str:
    """Compare what a second process would add with the loading that it would save."""
    path = folder / "one.json"
    capture = loaders.load(path)
    packed = pickle.dumps(capture, protocol=pickle.HIGHEST_PROTOCOL)
    there = ratio(lambda: pickle.dumps(capture, -1), lambda: loaders.load(path))
    back = ratio(lambda: pickle.loads(packed), lambda: loaders.load(path))
    return (
        f"its capture from another process: {there:.2f} x the CPU time of loading it to"
        f" send, {back:.2f} x to receive"
    )


def memory(folder: Path, count: int) -> str:
    """Load so many files into one table, in a process of its own."""
    data = long_run(500_000)
    for number in range(count):
        (folder / f"run-{number:04}.json").write_bytes(data)
    program = (
        "import resource, sys; from pathlib import Path\n"
        "from patchstudy.report import listing\n"
        "captures, errors = listing.loaded([Path(sys.argv[1])])\n"
        "table = listing.load_table(captures, 'interval')\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        "print(f'{len(table)} rows, {len(errors)} errors, peak {peak:.0f} MiB')"
    )
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    took = time.monotonic() - start
    megabytes = count * len(data) / 1e6
    return f"{count} files, {megabytes:.0f} MB: {done.stdout.strip()}, {took:.0f} s"


def of_system(folder: Path) -> Iterator[str]:
    """Compare texts that jc reads too, with jc told which tool wrote them."""
    import jc

    for name, parser, times in SYSTEM:
        text = (GOLDEN / name).read_text(encoding="utf-8")
        if times > 1:  # the banner, the report of its first second, its averages
            head, first, *_others, averages = text.split("\n\n")
            text = "\n\n".join([head, *[first] * times, averages])
        path = folder / "text"
        path.write_text(text, encoding="utf-8")
        yield f"{name}, {len(text)} byte: {versus(path, parser, jc)}"
    shared = ROOT.parent / "shared" / "corpus" / "sys"
    place = (shared if shared.is_dir() else GOLDEN) / "mpstat"
    texts, left = [], []
    for one in sorted(place.glob("*.txt")):
        why = _left_out(one)
        if why:
            left.append(f"{one.name} ({why})")
        else:
            texts.append(one)
    together = ratio(
        lambda: [loaders.load(one) for one in texts],
        lambda: [_jc_reads(one) for one in texts],
    )
    size = sum(one.stat().st_size for one in texts)
    yield f"{len(texts)} texts of mpstat, {size} byte together: {together:.2f} x"
    if left:
        yield f"not among them: {', '.join(left)}"


def _jc_reads(path: Path) -> object:
    import jc

    return jc.parse("mpstat", path.read_text(encoding="utf-8"), quiet=True)


def _left_out(path: Path) -> str:
    """Say why a text can't be compared; nothing where jc and we both read it."""
    try:
        loaders.load(path)
    except CaptureError as error:
        return f"we: {error.problem}"
    try:
        return "" if _jc_reads(path) else "jc reads nothing of it"
    except Exception as error:  # jc raises whatever it meets
        return f"jc: {type(error).__name__}"


def versus(path: Path, parser: str | None, jc: Any) -> str:  # noqa: ANN401
    """Compare a loader with a parser of jc on one text."""
    raw = loaders.read(path)
    loader = loaders.LOADERS[loaders.taker(raw)]
    if parser is None:
        spent = min(cpu_s(lambda: loaders.load(path)) for _ in range(99))
        return f"jc has no parser; {spent * 1e6:.0f} us"
    if not jc.parse(parser, raw.text, quiet=True):
        return "jc reads nothing of it"

    def theirs() -> object:
        return jc.parse(parser, path.read_text(encoding="utf-8"), quiet=True)

    def ours() -> object:
        return loader.load(loaders.read(path))

    told, found = ratio(ours, theirs), ratio(lambda: loaders.load(path), theirs)
    return f"{told:.2f} x the CPU time of jc; {found:.2f} x with recognising the file"


def main() -> int:
    """Print one line a measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000, help="files for the memory")
    count = parser.parse_args().files
    with tempfile.TemporaryDirectory() as folder:
        print(of_iperf3(Path(folder)), flush=True)
        print(of_processes(Path(folder)), flush=True)
        for line in of_system(Path(folder)):
            print(line, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        print(memory(Path(folder), count))
    return 0


if __name__ == "__main__":
    sys.exit(main())
