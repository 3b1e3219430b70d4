"""Make the same reports in other surroundings: every file must have the same bytes.

Each line of the output is one way in which two desks differ: folder, time zone, locale,
user, order of the files on the disk, number of workers and so on. The studies are
copied to a place of their own, ``patchstudy report`` makes notebook, HTML, PDF, text
and JSON of them and the index, and all are compared with those of the first line. What
cannot be tried here is said.

    python benchmarks/same_bytes.py                     # about ten minutes
    python benchmarks/same_bytes.py --study veth/gro --only 'hash|locale'
    python benchmarks/same_bytes.py --python python3.12 --python /opt/py3.13/bin/python

A Python that is named must have the locked packages (``requirements.lock``) and be one
in which patchstudy is installed; the code that runs is that of this folder. Where the
lock has other versions for it (numpy, SciPy), a report names these: then results and
text blocks are compared without the names of versions.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
#: A table of published values, one of raw files of several tools, one with profiles.
STUDIES: Final = ("bgmac/prefetch", "e1000/rx-prefetch", "veth/gro")
#: Beside a report; holds times and inodes, and goes to nobody.
RECORD: Final = ".made.json"
#: Somebody who owns nothing.
OTHER_USER: Final = 54321
AS_OTHER_USER: Final = [
    "setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups",
]  # fmt: skip
#: What a processor of 2011 does not have.
OLD_PROCESSOR: Final = {
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512_SKX X86_V4 AVX2 FMA3 X86_V3",
    "OPENBLAS_CORETYPE": "Nehalem",
    "ARROW_USER_SIMD_LEVEL": "SSE4_2",
}
#: What people have in their home, and no report may show.
HOME: Final = {
    ".config/matplotlib/matplotlibrc": "font.size: 30\nsvg.fonttype: none\n",
    ".ipython/profile_default/ipython_config.py": "c.InteractiveShell.precision = 2\n",
    ".ipython/profile_default/startup/00.py": "import pandas\n"
    "pandas.set_option('display.max_rows', 3)\nprint('hello')\n",
    ".jupyter/jupyter_nbconvert_config.py": "c.HTMLExporter.exclude_input = True\n",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where a report is made.

    Attributes
    ----------
    words
        More words of the command.
    before
        What the command is begun with, such as ``setpriv``.
    backwards
        Whether the files are copied in the reverse order, with times of their own.
    home
        Whether the home has settings of its own.
    missing
        Why it cannot be tried; empty where it can.
    """

    name: str
    env: Mapping[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    folder: str = "here"
    umask: int = 0o022
    backwards: bool = False
    home: bool = False
    user: int | None = None
    python: str = sys.executable
    missing: str = ""


def desks(locales: Path, pythons: list[str], scheduler: str = "") -> list[Desk]:
    """Return every way in which two desks differ; the first is what others are held to.

    Parameters
    ----------
    locales
        Folder that ``make_locales`` filled.
    pythons
        Other interpreters.
    scheduler
        Address of a running one of Dask.
    """
    return [
        Desk(name="as it is"),
        Desk(name="once more"),
        Desk(name="another folder", folder="dort/größer & <b>'x'</b>"),
        Desk(name="time zone Apia", env={"TZ": "Pacific/Apia"}),
        Desk(name="time zone St. John's", env={"TZ": "America/St_Johns"}),
        Desk(name="locale C, no UTF-8", env={
            "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
        *(located(name, locales) for name in ("de_DE", "tr_TR")),
        Desk(name="hash seed 1", env={"PYTHONHASHSEED": "1"}),
        Desk(name="hash seed 4711", env={"PYTHONHASHSEED": "4711"}),
        Desk(name="another user", user=OTHER_USER, missing=nobody_else()),
        Desk(name="umask 077", umask=0o077),
        Desk(name="settings in the home", home=True),
        Desk(name="files in another order", backwards=True),
        Desk(name="one worker", words=("--jobs", "1")),
        Desk(name="four workers", words=("--jobs", "4")),
        Desk(name="a new process for each", words=("--engine", "nbclient")),
        Desk(name="workers of a cluster", words=("--executor", f"dask://{scheduler}"),
             missing="" if scheduler else "no scheduler (--dask)"),
        Desk(name="terminal", env={"TERM": "dumb", "COLUMNS": "20", "LINES": "3",
                                   "NO_COLOR": "1", "MPLBACKEND": "svg"}),
        Desk(name="python -OO", before=(sys.executable, "-OO"), python=""),
        Desk(name="old processor", env=OLD_PROCESSOR),
        Desk(name="one thread", env={"OPENBLAS_NUM_THREADS": "1",
                                     "OMP_NUM_THREADS": "1"}),
        together(locales),
        *(Desk(name=f"{Path(one).parents[1].name}/{Path(one).name}", python=one)
          for one in pythons),
    ]  # fmt: skip


def together(locales: Path) -> Desk:
    """Return a desk that is another one in every way that needs no other program."""
    turkish = located("tr_TR", locales)
    env = {"TZ": "Pacific/Apia", "PYTHONHASHSEED": "7", "COLUMNS": "20"}
    return Desk(
        name="all at once",
        env={**env, **OLD_PROCESSOR, **({} if turkish.missing else turkish.env)},
        words=("--jobs", "3"),
        folder="dort/größer & <b>'x'</b>",
        umask=0o077,
        backwards=True,
        home=True,
    )


def nobody_else() -> str:
    """Say why the program cannot be run by another user; nothing where it can."""
    if os.geteuid() or not shutil.which("setpriv"):
        return "only root, with setpriv, may be somebody else"
    code = "import subprocess as s, sys; s.run([sys.executable, '-c', ''], check=True)"
    order = [*AS_OTHER_USER, sys.executable, "-c", code]
    done = subprocess.run(order, capture_output=True, check=False)
    return "this Python is not for everybody" if done.returncode else ""


def located(name: str, locales: Path) -> Desk:
    """Return a desk whose locale has a decimal comma, where it could be made."""
    env = {"LC_ALL": f"{name}.UTF-8", "LANG": f"{name}.UTF-8", "LOCPATH": str(locales)}
    code = "import locale as l; l.setlocale(l.LC_ALL, ''); print(l.str(1.5))"
    order = [sys.executable, "-c", code]
    done = subprocess.run(
        order, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    missing = "" if done.stdout.strip() == "1,5" else "no such locale can be made"
    return Desk(name=f"locale {name}", env=env, missing=missing)


def make_locales(folder: Path) -> Path:
    """Make the locales where the system can; return the folder."""
    for name in ("de_DE", "tr_TR") if shutil.which("localedef") else ():
        order = ["localedef", "-i", name, "-f", "UTF-8", str(folder / f"{name}.UTF-8")]
        subprocess.run(order, capture_output=True, check=False)
    return folder


def copied(studies: tuple[str, ...], to: Path, *, backwards: bool) -> None:
    """Copy studies, file by file in an order."""
    names = [
        path.relative_to(ROOT / "data")
        for study in studies
        for path in (ROOT / "data" / study).rglob("*")
        if path.is_file()
    ]
    for at, name in enumerate(sorted(names, reverse=backwards)):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "data" / name, to / name)
        if backwards:  # younger and younger, the last ones in the future
            age = time.time() - 1e6 + at * 1e4
            os.utime(to / name, (age, age))


def made(desk: Desk, studies: tuple[str, ...], place: Path) -> dict[str, bytes]:
    """Make the reports of a desk; return every file of them by name.

    Raises
    ------
    RuntimeError
        If the program says that anything went wrong.
    """
    folder, home = place / desk.folder, place / "home of it"
    copied(studies, folder / "data", backwards=desk.backwards)
    (folder / "reports").mkdir()
    home.mkdir()
    for name, text in HOME.items() if desk.home else ():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")
    with as_user(desk.user, place) as before:
        order = [
            *before,
            *desk.before,
            *filter(None, [desk.python]),
            "-m",
            "patchstudy",
        ]
        done = subprocess.run(
            [*order, "report", "data", "-o", "reports", "--quiet", *desk.words],
            cwd=folder, env=surroundings(desk, home), umask=desk.umask,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{desk.name}: exit {done.returncode}: {done.stderr}")
    return {
        path.relative_to(folder / "reports").as_posix(): path.read_bytes()
        for path in sorted((folder / "reports").rglob("*"))
        if path.is_file() and path.name != RECORD
    }


@contextmanager
def as_user(user: int | None, place: Path) -> Iterator[list[str]]:
    """Yield the words that make a command somebody else's, who then owns the place."""
    if user is None:
        yield []
        return
    for path in (place, *place.rglob("*")):
        os.chown(path, user, user)
    yield AS_OTHER_USER


def surroundings(desk: Desk, home: Path) -> dict[str, str]:
    """Return the environment of a desk: as little of ours as the program needs."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if key in {"PATH", "LD_LIBRARY_PATH", "SYSTEMROOT"}
    }
    mine = {"HOME": str(home), "LC_ALL": "C.UTF-8", "TZ": "UTC", "TMPDIR": str(home)}
    return {**kept, **mine, "PYTHONPATH": str(ROOT / "lib"), **desk.env}


def differing(first: Mapping[str, bytes], other: Mapping[str, bytes]) -> list[str]:
    """Name every file that is not the same in both, and where it begins to differ."""
    told = []
    for name in sorted({*first, *other}):
        one, two = first.get(name, b""), other.get(name, b"")
        if one != two:
            pairs = zip_longest(one, two)
            at = next(n for n, (a, b) in enumerate(pairs) if a != b)
            told.append(f"{name} at byte {at}: {one[at:][:40]!r}, {two[at:][:40]!r}")
    return told


@contextmanager
def cluster(place: Path, *, wanted: bool) -> Iterator[str]:
    """Start a scheduler of Dask and two workers; yield its address, or nothing."""
    if not wanted:
        yield ""
        return
    env = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    start = [sys.executable, "-m"]
    told = place / "address"
    scheduler = ["distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard",
                 "--host", "127.0.0.1", "--scheduler-file", str(told)]  # fmt: skip
    worker = ["distributed.cli.dask_worker", "--scheduler-file", str(told),
              "--nthreads", "1", "--no-nanny", "--no-dashboard",
              "--host", "127.0.0.1"]  # fmt: skip
    running = [
        subprocess.Popen([*start, *one], env=env, cwd=place, stderr=subprocess.DEVNULL)
        for one in (scheduler, worker, worker)
    ]
    try:
        while not (told.is_file() and (found := _ADDRESS.search(told.read_text()))):
            time.sleep(0.1)
        yield found[1]
    finally:
        for one in running:
            one.kill()
            one.wait()


_ADDRESS: Final = re.compile(r'"address": "tcp://([^"]+)"')


def without_versions(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Keep results and text blocks, without the versions that the results name."""
    kept = {name: data for name, data in files.items() if name.endswith("report.txt")}
    for name, data in files.items():
        if name.endswith("report.json"):
            content = json.loads(data)
            del content["provenance"]["versions"]
            kept[name] = json.dumps(content, indent=1).encode()
    return kept


def compared(given: argparse.Namespace, place: Path, scheduler: str) -> int:
    """Make the reports of every desk, print a line for each; return how many differ."""
    first: dict[str, bytes] = {}
    bad = 0
    locales = make_locales(place)
    for number, desk in enumerate(desks(locales, given.python, scheduler)):
        if desk.missing or (number and not re.search(given.only, desk.name)):
            if desk.missing:
                print(f"{desk.name:<24} not tried: {desk.missing}")
            continue
        spot = place / f"desk {number}"
        spot.mkdir()
        files = made(desk, tuple(given.study or STUDIES), spot)
        first = first or files
        told = differing(first, files)
        same = f"{len(files)} files, the same bytes"
        if told and desk.python not in {"", sys.executable}:
            told = differing(*map(without_versions, (first, files)))
            same = "the same results and texts; other versions of libraries are named"
        bad += bool(told)
        same = "differ" if told else same
        print("\n  ".join([f"{desk.name:<24} {same}", *told]), flush=True)
        shutil.rmtree(spot)
    return bad


def main() -> int:
    """Run as told; return 1 where anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--study", action="append", metavar="DRIVER/PATCH")
    parser.add_argument("--only", default="", metavar="REGEX", help="names of lines")
    parser.add_argument("--python", action="append", default=[], metavar="PATH")
    parser.add_argument("--dask", action="store_true", help="start a small cluster too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made_here:
        place = Path(made_here).resolve()
        place.chmod(0o755)
        with cluster(place, wanted=given.dask) as scheduler:
            return 1 if compared(given, place, scheduler) else 0


if __name__ == "__main__":
    sys.exit(main())
