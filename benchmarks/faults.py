"""Kill programs, cut the power, take rights away: a report stays old or gets new.

A process writes one version of a report after the other, as ``patchstudy report`` does,
and is killed with SIGKILL at a random moment, many times. A file system of its own is
stopped as by a power cut (ext4's shutdown: what was not forced to the disk is lost).
Before and after each fault every file must be whole and all of one version. The clock
jumps by days while reports are made: a library put before libc's tells the program a
shifted time (it takes a C compiler). Mounting and other users need root; what could not
be tried is said.

    python benchmarks/faults.py                       # about five minutes
    python benchmarks/faults.py --kills 20 --cuts 5 --reports 0 --seed 7
"""

import argparse
import fcntl
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from patchstudy.report.files import SWITCH, settle, write_all

#: The sizes of a report: page, PDF, notebook, results, text, record.
NAMES = (
    "report.html", "report.pdf", "report.ipynb", "report.json", "report.txt",
    ".made.json",
)  # fmt: skip
SIZE = 300_000
#: ext4's ioctl to stop at once, and its flag for "do not write the journal".
SHUTDOWN, NOLOGFLUSH = 0x8004587D, b"\2\0\0\0"
#: What lets root pass over the modes of files.
NO_OVERRIDE = "-dac_override,-dac_read_search"
#: Days that the clock is wrong by, one after the other, ten a second.
JUMPS = (-3, 40, 0, -400, 0)
#: The wall clock with a shift that a file tells, for a program that it is preloaded to.
CLOCK = """\
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long shift(void) {
    char text[32] = "";
    int file = open(getenv("CLOCK_SHIFT"), O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    if (read(file, text, sizeof text - 1) < 0) text[0] = 0;
    close(file);
    return atol(text);
}
int clock_gettime(clockid_t which, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, which, now);
    int wall = which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE;
    if (!failed && wall) now->tv_sec += shift();
    return failed;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return out ? (*out = now.tv_sec) : now.tv_sec;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}
"""
DATA = Path(__file__).parents[1] / "data"
SMALL, WITH_RAW_FILES = DATA / "bgmac" / "prefetch", DATA / "e1000" / "rx-prefetch"


def content(version: int) -> dict[str, bytes]:
    """Return the files of a version; each begins with it and ends with its digest."""
    made = {}
    for name in NAMES:
        body = f"{version} {name} ".encode() * (SIZE // 20)
        made[name] = body + sha256(body).hexdigest().encode()
    return made


def version_of(data: bytes) -> int:
    """Return the version of a whole file.

    Raises
    ------
    ValueError
        If the file is not whole.
    """
    body, digest = data[:-64], data[-64:].decode("ascii", "replace")
    if sha256(body).hexdigest() != digest:
        raise ValueError(f"a file of {len(data)} bytes is not whole")
    return int(body.split(maxsplit=1)[0])


def versions(folder: Path) -> list[int]:
    """Return the version of every file of a report."""
    return [version_of((folder / name).read_bytes()) for name in NAMES]


def write_for_ever(folder: Path) -> None:
    """Write one version after the other, and say when each is there."""
    with suppress(OSError):  # the disk was stopped
        for version in range(1, 10**9):
            write_all(folder, content(version))
            print(version, flush=True)


def whole(folder: Path, found: Counter[str]) -> int:
    """Look at a report as the next run does; return its version.

    Raises
    ------
    ValueError
        If its files are of two versions, or anything is left beside them.
    """
    found["of two versions until the next look"] += len(set(versions(folder))) > 1
    found["half a set beside them until the next run"] += any(folder.glob(".*.new"))
    settle(folder)
    one, *others = set(versions(folder))
    if others:
        raise ValueError(f"{folder}: files of versions {versions(folder)}")
    write_all(folder, content(one))
    left = sorted({path.name for path in folder.iterdir()} - {*NAMES, "lost+found"})
    if left:
        raise ValueError(f"left in the folder: {left}")
    found["old files and new ones after it"] += 0
    return one


def kills(count: int, seed: int) -> Counter[str]:
    """Kill so many writers; count how the files are left behind."""
    moments, found = random.Random(seed), Counter[str]()
    for _ in range(count):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            done = stopped(folder, lambda: time.sleep(moments.uniform(0, 0.2)))
            if whole(folder, found) < done:
                raise ValueError("an older version came back")
    return found


def stopped(folder: Path, wait: Callable[[], None]) -> int:
    """Kill a writer after a while; return the last version it said to be there."""
    order = [sys.executable, __file__, "--write", str(folder)]
    with subprocess.Popen(order, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        told = [writer.stdout.readline()]
        wait()
        writer.send_signal(signal.SIGKILL)
        told += writer.stdout.readlines()
    return int([line for line in told if line.endswith("\n")][-1])


# ---- a disk of its own --------------------------------------------------------------


@contextmanager
def mounted(place: Path, *options: str) -> Iterator[str]:
    """Mount a file system; yield an empty text, or why it could not be done."""
    order = ["mount", *options, str(place)]
    if os.geteuid():
        yield "not tried: only root may mount"
        return
    done = subprocess.run(order, capture_output=True, text=True, check=False)
    try:
        yield done.stderr and f"not tried: {done.stderr.strip()}"
    finally:
        if not done.returncode:
            subprocess.run(["umount", str(place)], check=True)


def power_cuts(count: int, seed: int) -> Counter[str] | str:
    """Stop a file system so many times while a writer writes to it."""
    moments, found = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as place:
        image, folder = Path(place, "disk"), Path(place, "mounted")
        folder.mkdir()
        image.touch()
        os.truncate(image, 2**26)
        make = ["mkfs.ext4", "-q", "-F", str(image)]
        if not shutil.which(make[0]) or subprocess.run(make, check=False).returncode:
            return "not tried: no mkfs.ext4"
        for _ in range(count):
            with mounted(folder, "-o", "loop", str(image)) as problem:
                if problem:
                    return problem

                def cut() -> None:
                    time.sleep(moments.uniform(0, 0.2))
                    with_no_warning(folder)

                done = stopped(folder, cut)
            # Only now is read what the disk kept.
            with mounted(folder, "-o", "loop", str(image)):
                if whole(folder, found) < done:
                    raise ValueError("a version that was said to be there is gone")
    return found


def with_no_warning(folder: Path) -> None:
    """Stop the file system of a folder at once."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.ioctl(handle, SHUTDOWN, NOLOGFLUSH)
    finally:
        os.close(handle)


def full_disk(folder: Path) -> str:
    """Write a version for which there is no room; return the error."""
    write_all(folder, content(1))
    try:
        write_all(folder, {name: data * 20 for name, data in content(2).items()})
    except OSError as error:
        if whole(folder, Counter()) != 1:
            raise ValueError("not the old files") from error
        return error.strerror or type(error).__name__
    raise ValueError("the disk was not full")


def too_large_a_file(folder: Path) -> str:
    """Limit the size of a file (RLIMIT_FSIZE), as a quota does; return the error."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SIZE * 2, before[1]))
    try:
        return full_disk(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def small_disk(folder: Path) -> str:
    """Fill a disk of 5 MB; return the error, or why it was not tried."""
    with mounted(folder, "-t", "tmpfs", "-o", "size=5m", "tmpfs") as problem:
        return problem or full_disk(folder)


# ---- the command itself -------------------------------------------------------------


def command(*words: str | Path) -> list[str]:
    """Return the command line of the program, in this Python."""
    return [sys.executable, "-m", "patchstudy", *map(str, words)]


def without_rights(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the program with no more rights than the modes of files give their owner."""
    less = [] if os.geteuid() else ["setpriv", f"--bounding-set={NO_OVERRIDE}"]
    return subprocess.run(
        [*less, *command(*words)], capture_output=True, text=True, check=False
    )


def no_rights(folder: Path) -> Iterator[str]:
    """Yield what the program says where it may not write, and where not read."""
    if not (os.geteuid() or shutil.which("setpriv")):
        yield "not tried: root has every right, and setpriv is not there"
        return
    study, out = folder / "driver" / "patch", folder / "reports"
    shutil.copytree(WITH_RAW_FILES, study)
    subprocess.run(command("report", study, "-o", out, "--quiet"), check=True)
    for place in (out / "driver" / "patch", out):
        before = snapshot(place)
        place.chmod(0o500)
        done = without_rights("report", study, "-o", out, "--force", "--quiet")
        if snapshot(place) != before or not done.returncode:
            raise ValueError("a folder that may not be written was changed")
        yield f"{place.name} read only: exit {done.returncode}, {done.stderr}"
    raw = next(one for one in sorted(study.rglob("*.json")) if "facts" not in str(one))
    raw.chmod(0)
    done = without_rights("report", study, "-o", folder / "other", "--quiet")
    yield f"{raw.name} not readable: exit {done.returncode}, {done.stderr}"
    out.chmod(0o700)
    (out / "driver" / "patch").chmod(0o700)


def snapshot(folder: Path) -> dict[str, str]:
    """Return a digest of every file below a folder."""
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def reports_killed(count: int, seed: int) -> Counter[str]:
    """Kill ``patchstudy report`` itself, with everything that it started.

    The study changes each time, so that each run has something to do.
    """
    moments, found = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as place:
        study, out = Path(place, "driver", "patch"), Path(place, "reports")
        shutil.copytree(SMALL, study)
        design = (study / "study.toml").read_text(encoding="utf-8")
        order = command("report", study, "-o", out, "--quiet")
        began = time.monotonic()
        subprocess.run(order, check=True)
        longest = time.monotonic() - began
        for turn in range(count):
            before = _set(out)
            told = f"# {turn}\n{design}"
            (study / "study.toml").write_text(told, encoding="utf-8")
            with subprocess.Popen(order, start_new_session=True) as running:
                time.sleep(moments.uniform(0, longest))
                os.killpg(running.pid, signal.SIGKILL)
            left = out / "driver" / "patch"
            found["half done until the next look"] += (left / SWITCH).exists()
            settle(left)
            same = _set(out) == before
            found["the old report" if same else "the new report"] += 1
            check = command("verify", left, "--data", study)
            done = subprocess.run(check, capture_output=True, text=True, check=False)
            if not same and done.returncode:
                raise ValueError(f"not whole: {done.stdout}{done.stderr}")
    return found


def clock_jumps(folder: Path) -> str:
    """Let the clock jump while a report is made: it must be the same as ever."""
    compiler = shutil.which("cc")
    if compiler is None:
        return "not tried: no C compiler"
    library, shift = folder / "clock.so", folder / "shift"
    build = [compiler, "-shared", "-fPIC", "-o", str(library), "-x", "c", "-"]
    subprocess.run(build, input=CLOCK, text=True, check=True)
    shifted = os.environ | {"LD_PRELOAD": str(library), "CLOCK_SHIFT": str(shift)}
    shift.write_text("-86400", encoding="ascii")
    ask = [sys.executable, "-c", "import time; print(time.time())"]
    told = subprocess.check_output(ask, env=shifted, text=True)
    if abs(time.time() - 86_400 - float(told)) > 100:
        return "not tried: the program does not take its time from this libc"
    steady, _ = _reported(folder / "steady", shift, dict(os.environ))
    jumping, jumps = _reported(folder / "jumping", shift, shifted)
    if not steady or steady != jumping:
        raise ValueError("another report while the clock jumped")
    return f"{jumps} jumps while a report was made: the same bytes, borne out by verify"


def _reported(
    folder: Path, shift: Path, env: dict[str, str]
) -> tuple[dict[str, str], int]:
    """Report while the shift of the clock changes; return the files, and how often."""
    study, out, jumps = folder / "driver" / "patch", folder / "reports", 0
    shutil.copytree(WITH_RAW_FILES, study)
    order = command("report", study, "-o", out, "--quiet")
    with subprocess.Popen(order, env=env) as running:
        while running.poll() is None:
            days = JUMPS[jumps % len(JUMPS)]
            shift.write_text(str(days * 86_400), encoding="ascii")
            jumps += 1
            time.sleep(0.1)
    if running.returncode:
        raise ValueError(f"exit {running.returncode} while the clock jumped")
    subprocess.run(command("verify", out / "driver" / "patch"), check=True)
    return _set(out), jumps


def _set(out: Path) -> dict[str, str]:
    return {
        name: digest
        for name, digest in snapshot(out / "driver" / "patch").items()
        if name.startswith("report.")
    }


def told(name: str, found: Counter[str] | str) -> None:
    """Print what was found."""
    if isinstance(found, str):
        print(f"{name}: {found}")
        return
    print(f"{name}: every file whole, every report of one version")
    for how, times in sorted(found.items()):
        print(f"  {times:4} {how}")


def main() -> None:
    """Try each fault, and print what was left."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200, metavar="N")
    parser.add_argument("--cuts", type=int, default=50, metavar="N")
    parser.add_argument("--reports", type=int, default=10, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write:
        write_for_ever(given.write)
        return
    for name, fault in (("small disk", small_disk), ("quota", too_large_a_file)):
        with tempfile.TemporaryDirectory() as place:
            print(f"{name}: {fault(Path(place))}; the old files are whole")
    told(f"{given.kills} kills, seed {given.seed}", kills(given.kills, given.seed))
    cuts = power_cuts(given.cuts, given.seed)
    told(f"{given.cuts} power cuts, seed {given.seed}", cuts)
    if given.reports:
        with tempfile.TemporaryDirectory() as place:
            for line in no_rights(Path(place)):
                print(line.strip())
        with tempfile.TemporaryDirectory() as place:
            print(f"clock: {clock_jumps(Path(place))}")
        found = reports_killed(given.reports, given.seed)
        told(f"{given.reports} killed commands, seed {given.seed}", found)


if __name__ == "__main__":
    main()
