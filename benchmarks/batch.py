"""What a batch costs: python benchmarks/batch.py [--studies N] [--sample N].

Clones the shipped studies with changed values and reports them, and measures beside it,
on this machine and in the same run, a loop over a few of them of ``papermill``,
``jupyter nbconvert --to html`` and Chromium's PDF; then how long it takes to find that
nothing changed, what part of the time 1 to 8 workers do not spend in studies, and a
batch of small studies of which three are broken on purpose.
CPU seconds are user and system of all processes; what counts are the ratios.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[1]
NUMBER = re.compile(rb"\d{5,}\.\d+")
DESIGN = """\
question = "Is it faster?"
unit = "run"
block = "block"
[[metrics]]
name = "throughput"
role = "primary"
margin = "2 %"
"""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Seconds on the clock, seconds of CPU, and the largest process in MiB."""

    wall: float
    cpu: float
    peak: float = 0.0


class Meter:
    """Measures what is done between ``with`` and its end, all processes counted."""

    def __enter__(self) -> "Meter":
        self._wall, self._cpu = time.monotonic(), _cpu_s()
        return self

    def __exit__(self, *_: object) -> None:
        self.cost = Cost(wall=time.monotonic() - self._wall, cpu=_cpu_s() - self._cpu)


def _cpu_s() -> float:
    """CPU of this process and of all that it waited for."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(kind) for kind in kinds]
    return sum(one.ru_utime + one.ru_stime for one in used)


def clone(studies: Path, into: Path, count: int) -> list[Path]:
    """Copy the shipped studies in turn, each copy with rates of its own.

    Every turn has a driver's folder of its own, in which a study still finds the one
    that its noise is taken from; those that need another come last in their turn.
    """
    found = sorted(studies.rglob("study.toml"), key=lambda x: (_needs_another(x), x))
    sources = [path.parent for path in found]
    made = []
    for number in range(count):
        turn, at = divmod(number, len(sources))
        source = sources[at]
        target = into / f"{source.parent.name}-{turn:03}" / source.name
        shutil.copytree(source, target)
        for path in target.rglob("*.iperf3.json"):
            change(path, 1 + number / 1e6)
        made.append(target)
    return made


def _needs_another(design: Path) -> bool:
    return "noise" in tomllib.loads(design.read_text(encoding="utf-8"))


def change(path: Path, factor: float) -> None:
    """Scale the rates of an iperf3 file a little: other bytes, still plausible."""

    def scaled(match: re.Match[bytes]) -> bytes:
        return f"{float(match[0]) * factor:.6f}".encode()

    path.write_bytes(NUMBER.sub(scaled, path.read_bytes()))


def small(into: Path, count: int, broken: int) -> None:
    """Write small synthetic studies; the first ones cannot be read."""
    for number in range(count):
        folder = into / "synthetic" / f"s{number:04}"
        folder.mkdir(parents=True)
        torn = number < broken
        design = "question = 1\n" if torn else DESIGN
        (folder / "study.toml").write_text(design)
        rows = ["metric,unit,value,variant,block,run,position,device,workload"]
        for at in range(12):
            block = at // 2 + 1
            variant = ("baseline", "patched")[at // 2 % 2 ^ at % 2]
            rate = 100 + (variant == "patched") * (number % 9 - 4)
            value = rate * (1 + at * 7 % 5 / 1000)
            row = ["throughput", "Mbit/s", value, variant, block, at + 1, at + 1]
            rows.append(",".join(map(str, [*row, "router", "tcp"])))
        (folder / "measurements.csv").write_text("\n".join(rows) + "\n")


def report(data: Path, out: Path, *words: str) -> tuple[Cost, int, str, str]:
    """Run ``patchstudy report``; return its cost, exit status and what it printed."""
    command = [sys.executable, "-m", "patchstudy", "report", str(data), "-o", str(out)]
    with Meter() as meter, _cpu_file() as told:
        done = subprocess.Popen(
            [sys.executable, "-c", _ACCOUNTED, str(told), *command, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with watched(done.pid) as peaks:
            printed, complained = done.communicate()
        cpu = float(told.read_text() or "nan")
    cost = Cost(wall=meter.cost.wall, cpu=cpu, peak=max(peaks, default=0.0))
    return cost, done.returncode, printed, complained


#: Runs a command and notes the CPU of all that came from it, orphans included.
_ACCOUNTED = """
import ctypes, os, resource, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
done = subprocess.run(sys.argv[2:])
try:
    while True: os.wait()
except ChildProcessError: pass
used = resource.getrusage(resource.RUSAGE_CHILDREN)
open(sys.argv[1], "w").write(str(used.ru_utime + used.ru_stime))
sys.exit(done.returncode)
"""


@contextmanager
def _cpu_file() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cpu"
        path.touch()
        yield path


@contextmanager
def watched(pid: int) -> Iterator[list[float]]:
    """Sample the memory of all processes below one: the largest unshared, in MiB."""
    peaks: list[float] = []
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(0.5):
            peaks.extend(_private_mib(one) for one in _below(pid))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()


def _below(pid: int) -> list[int]:
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = int(words[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def _private_mib(pid: int) -> float:
    """Memory that a process shares with no other."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(x.split()[1]) for x in lines if x.startswith("Private_")) / 1024


def loop(studies: Sequence[Path], out: Path) -> Cost:
    """Report each study the plain way: three programs, one after the other."""
    here = Path(sys.executable).parent
    notebook = ROOT / "notebooks" / "patch.ipynb"
    with Meter() as meter:
        for number, study in enumerate(studies):
            folder = out / f"{number}"
            folder.mkdir(parents=True)
            done = folder / "report.ipynb"
            _run(here / "papermill", notebook, done, "-p", "study", study.resolve(),
                 "--cwd", folder, "-k", "python3", "--no-progress-bar")  # fmt: skip
            _run(here / "jupyter", "nbconvert", "--to", "html", done)
            page = folder / "report.html"
            _run("chromium", "--headless", "--no-sandbox", "--disable-gpu",
                 f"--user-data-dir={folder / 'profile'}", "--no-pdf-header-footer",
                 f"--print-to-pdf={folder / 'report.pdf'}", page.resolve().as_uri(),
                 )  # fmt: skip
            shutil.rmtree(folder / "profile", ignore_errors=True)
    return meter.cost


def _run(*words: object) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    subprocess.run(
        list(map(str, words)), check=True, capture_output=True, env=env, cwd=ROOT
    )


def floor(studies: Sequence[tuple[Path, Path]]) -> Cost:
    """What the cells and the exporters use in one process that has all imported."""
    program = f"""
import json, sys, time
sys.path[:0] = [{str(ROOT / "lib")!r}]
import patchstudy as ps
from patchstudy import sections
from patchstudy.report import handed, html, pdf
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbformat import v4
shell = InteractiveShell.instance()
source = v4.reads(open({str(ROOT / "notebooks/patch.ipynb")!r}).read())
def once(study):
    cells = [x.source for x in source.cells if x.cell_type == "code"][1:]
    for cell in cells:
        with capture_output():
            shell.user_ns |= {{"study": study, "redact": False}}
            assert shell.run_cell(cell).success
    handed.handed(shell.user_ns["assessment"])
def exporters(path):
    done = v4.reads(open(path).read())
    html.to_html(done, title="T")
    pdf.to_pdf(done, title="T", subtitle="")
studies = json.loads(sys.argv[1])
once(studies[0][0]); exporters(studies[0][1])
began = time.process_time()
for study, done in studies: once(study); exporters(done)
print(time.process_time() - began)
"""
    pairs = [[str(study), str(done)] for study, done in studies]
    with Meter() as meter:
        told = subprocess.run(
            [sys.executable, "-c", program, json.dumps(pairs)],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"},
        )
    return Cost(wall=meter.cost.wall, cpu=float(told.stdout.split()[-1]))


def main() -> None:
    """Measure, print the table."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--studies", type=int, default=100)
    words.add_argument("--sample", type=int, default=7)
    words.add_argument("--small", type=int, default=1000)
    words.add_argument("--jobs", type=int, default=2)
    words.add_argument("--workers", type=int, nargs="*", default=(1, 2, 4, 8))
    asked = words.parse_args()
    with tempfile.TemporaryDirectory(prefix="patchstudy-benchmark-") as name:
        _measure(Path(name), asked)


def _measure(place: Path, asked: argparse.Namespace) -> None:
    jobs = ("--jobs", str(asked.jobs))
    folders = clone(ROOT / "data", place / "data", asked.studies)
    sample = folders[: asked.sample]
    full, status, _, told = report(place / "data", place / "out", *jobs)
    print(f"{asked.studies} clones of the shipped studies, exit {status}")
    _line("made", full, asked.studies)
    if status:
        print(told)
    _again(place, folders, jobs)
    plain = loop(sample, place / "loop")
    _line(f"loop of three programs, on {len(sample)} of them", plain, len(sample))
    part, _, _, _ = report(
        place / "data", place / "part", *jobs,
        *(x for one in sample for x in ("--study", "/".join(one.parts[-2:]))),
    )  # fmt: skip
    _line("the same studies by patchstudy report", part, len(sample))
    print(f"  loop / batch: {plain.wall / part.wall:.1f} times the time, "
          f"{plain.cpu / part.cpu:.1f} times the CPU")  # fmt: skip
    part_of = {x: place / "part" / x.parent.name / x.name for x in sample}
    least = floor([(x, part_of[x] / "report.ipynb") for x in sample])
    _line("cells and exporters in one warm process", least, len(sample))
    print(f"  batch / floor: {part.cpu / least.cpu:.2f} times the CPU")
    _workers(place, asked)
    _small(place / "small", asked, jobs)


def _again(place: Path, folders: Sequence[Path], jobs: tuple[str, str]) -> None:
    """Report again: nothing changed, then one raw file."""
    again = [report(place / "data", place / "out", *jobs)[0] for _ in range(2)]
    for one in again:
        _line("nothing changed", one, len(folders))
    files = (x for one in reversed(folders) for x in one.rglob("*.iperf3.json"))
    change(next(files), 1.01)
    one, _, printed, _ = report(place / "data", place / "out", *jobs)
    _line("one raw file changed", one, len(folders))
    print(f"  {printed.strip().rpartition('(')[2].rstrip(')')}")


def _small(place: Path, asked: argparse.Namespace, jobs: tuple[str, str]) -> None:
    if not asked.small:
        return
    small(place / "data", asked.small, broken=3)
    words = (*jobs, "--quiet")
    cost, status, printed, told = report(place / "data", place / "out", *words)
    print(f"{asked.small} small synthetic studies, 3 broken: exit {status}")
    _line("made", cost, asked.small)
    print("  " + printed.strip().rpartition("(")[2].rstrip(")"))
    print("".join(f"  {line}\n" for line in told.splitlines()), end="")
    for folder in sorted((place / "data").rglob("s000[0-2]")):
        shutil.rmtree(folder)
    report(place / "data", place / "out", *words)
    again, status, _, _ = report(place / "data", place / "out", *words)
    _line("nothing changed", again, asked.small)


def _workers(place: Path, asked: argparse.Namespace) -> None:
    """Say what part of the workers' time is not spent in the studies themselves."""
    for count in asked.workers:
        told = place / f"workers-{count}.xml"
        words = ("--jobs", str(count), "--force", "--junit", str(told), "--quiet")
        cost, _, _, _ = report(place / "data", place / f"workers-{count}", *words)
        cases = ET.parse(told).iter("testcase")
        busy = sum(float(one.get("time", "0")) for one in cases)
        outside = 1 - busy / (count * cost.wall)
        print(f"  {count} workers: {cost.wall:.1f} s, {outside:.1%} of their time not "
              "spent in studies", flush=True)  # fmt: skip


def _line(what: str, cost: Cost, count: int) -> None:
    peak = f", largest process {cost.peak:.0f} MiB unshared" if cost.peak else ""
    print(
        f"  {what}: {cost.wall:.1f} s, {cost.cpu:.1f} CPU s; "
        f"a study {cost.wall / count:.2f} s, {cost.cpu / count:.2f} CPU s{peak}",
        flush=True,
    )


if __name__ == "__main__":
    main()
