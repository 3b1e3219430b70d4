"""Break the writing of reports on purpose, and look at what is left.

Writes the files of a report again and again in another process and ends that process
with SIGKILL at a random moment; fills a small disk; forbids the folder. After each
fault every file must be whole, the old or the new one.

    python benchmarks/faults.py             # 200 kills, about a minute
    python benchmarks/faults.py --kills 20 --seed 7
"""

import argparse
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from hashlib import sha256
from pathlib import Path

from patchstudy.report.files import write_all

#: The sizes of a report: page, PDF, notebook, results, text.
NAMES = ("report.html", "report.pdf", "report.ipynb", "report.json", "report.txt")
SIZE = 300_000


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
    body, digest = data[:-64], data[-64:].decode()
    if sha256(body).hexdigest() != digest:
        raise ValueError(f"a file of {len(data)} bytes is not whole")
    return int(body.split(maxsplit=1)[0])


def write_for_ever(folder: Path) -> None:
    """Write one version after the other, and say when the first is there."""
    for version in range(1, 10**9):
        write_all(folder, content(version))
        if version == 1:
            print("begun", flush=True)


def kill_once(folder: Path, wait_s: float) -> list[int]:
    """Kill a writer after a time; return the versions of the files that are left."""
    order = [sys.executable, __file__, "--write", str(folder)]
    with subprocess.Popen(order, stdout=subprocess.PIPE) as writer:
        assert writer.stdout
        writer.stdout.readline()
        time.sleep(wait_s)
        writer.send_signal(signal.SIGKILL)
    return [version_of((folder / name).read_bytes()) for name in NAMES]


def kills(count: int, seed: int) -> Counter[str]:
    """Kill so many writers; count how the files are left behind."""
    moments, found = random.Random(seed), Counter[str]()
    for _ in range(count):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            versions = kill_once(folder, moments.uniform(0, 0.05))
            left = max(versions) - min(versions)
            found[
                "of one version" if left == 0 else "old and new beside each other"
            ] += 1
            found["with files half-written beside them"] += any(folder.glob(".*.tmp"))
            if left > 1:
                raise ValueError(f"versions {versions}: an older one came back")
    return found


def full_disk(folder: Path) -> str:
    """Write a version for which there is no room; return the error."""
    write_all(folder, content(1))
    try:
        write_all(folder, {name: data * 20 for name, data in content(2).items()})
    except OSError as error:
        _still_first(folder)
        return error.strerror or type(error).__name__
    raise ValueError("the disk was not full")


def _still_first(folder: Path) -> None:
    left = sorted(path.name for path in folder.iterdir() if path.is_file())
    if left != sorted(NAMES):
        raise ValueError(f"left in the folder: {left}")
    for name in NAMES:
        if version_of((folder / name).read_bytes()) != 1:
            raise ValueError(f"{name} is not the old one")


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
    """Mount a disk of 4 MB and fill it; return the error, or why it was not tried."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if (
        os.geteuid()
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        return "not tried: no right to mount"
    try:
        return full_disk(folder)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def main() -> None:
    """Try each fault, and print what was left."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        write_for_ever(arguments.write)
    for name, fault in (("small disk", small_disk), ("quota", too_large_a_file)):
        with tempfile.TemporaryDirectory() as place:
            print(f"{name}: {fault(Path(place))}; the old files are whole")
    found = kills(arguments.kills, arguments.seed)
    print(f"{arguments.kills} kills, seed {arguments.seed}: every file whole")
    for how, times in sorted(found.items()):
        print(f"  {times:4} {how}")


if __name__ == "__main__":
    main()
