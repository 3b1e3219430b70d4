"""Look for what ``--redact`` may not let through, in reports of real raw files.

The identifiers are found by this script's own rules, in the bytes of the raw files and
not in what the loaders made of them: MAC addresses, public IP addresses, names of hosts
(of uname, sysstat, JSON) and of users (``/home/...``, ``name@host``). Then the report
of each study is made with ``patchstudy report --redact`` and every file of it is
searched for them: page, notebook, results, text block, and the PDF with pdftotext and
pdfinfo (poppler-utils). Studies are taken as they are; loose files become studies made
up of them, one for each tool, whose numbers mean nothing.

    python benchmarks/redact.py ../shared/lab ../shared/corpus    # about five minutes
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from patchstudy import loaders
from patchstudy.errors import CaptureError, PatchstudyError
from patchstudy.study import open_study
from patchstudy.tree import RECORD

ROOT: Final = Path(__file__).parents[1]
DESIGN: Final = """\
question = "What do these files say?"
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
margin = "2 %"
"""
MAC: Final = re.compile(
    rb"(?<![\w:.-])(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}(?![\w:-])"
)
IPV4: Final = re.compile(rb"(?<![\w.-])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![\w.-])")
IPV6: Final = re.compile(
    rb"(?<![\w:])(?:[0-9a-f]{1,4}:{1,2}){2,7}[0-9a-f]{1,4}(?![\w:])"
)
HOSTS: Final = (
    re.compile(rb"(?m)^Linux [\w.+-]+ \(([\w.-]+)\)"),  # sysstat
    re.compile(rb"(?m)^Linux ([\w.-]+) \d+\.\d+\S* #"),  # uname -a
    re.compile(rb'"(?:hostname|nodename|host)" ?: ?"([\w.-]+)"'),
    re.compile(rb"(?m)^# hostname : ([\w.-]+)"),  # perf
)
USERS: Final = (
    re.compile(rb"/home/([A-Za-z][\w.-]*)"),
    re.compile(rb"(?<![\w.@/-])([a-z][a-z0-9_-]*)@(?!plt\b)[a-z0-9][\w.-]*(?=[:$# ])"),
)
#: Names that tell nothing of anybody; a shorter one cannot be looked for in a text.
NOBODY: Final = {"localhost", "root", "none", "unknown", "user", "host"}
SHORTEST: Final = 4


def identifiers(data: bytes) -> set[str]:
    """Return what tells a machine or a person, as it stands in a raw file."""
    found = {one.decode() for one in MAC.findall(data) if _tells(one)}
    for one in {*IPV4.findall(data), *IPV6.findall(data)}:
        try:
            if ip_address(one.decode()).is_global:
                found.add(one.decode())
        except ValueError:
            continue
    names = {x.decode() for pattern in (*HOSTS, *USERS) for x in pattern.findall(data)}
    return found | {
        one for one in names if len(one) >= SHORTEST and one.lower() not in NOBODY
    }


def _tells(mac: bytes) -> bool:
    return len(set(re.sub(rb"[:-]", b"", mac).lower())) > 1  # not all 0, not all f


def outputs(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield what stands in every file of a report, by its name.

    ``.made.json`` is not looked at: it has the true paths, and says so
    (``docs/trust.md``).
    """
    for path in sorted(folder.iterdir()):
        if path.suffix == ".pdf":
            for order in (["pdftotext", "-layout", path, "-"], ["pdfinfo", path]):
                done = subprocess.run(order, capture_output=True, check=True)
                yield path.name, done.stdout.decode()
        elif path.name != RECORD:
            yield path.name, path.read_text(encoding="utf-8")


def leaks(folder: Path, out: Path) -> tuple[int, int, list[str]]:
    """Return how many identifiers and files were looked at, and what came through.

    Raises
    ------
    PatchstudyError
        If no report was made.
    """
    raw = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    before = {path: sha256(path.read_bytes()).hexdigest() for path in raw}
    known = {one for path in raw for one in identifiers(path.read_bytes())}
    study = open_study(folder)
    own = f"{study.name} {study.design!r} {[run.name for run in study.runs]}".lower()
    known = {one for one in known if one.lower() not in own}
    command = [sys.executable, "-m", "patchstudy", "report", str(folder), "--redact"]
    done = subprocess.run(
        [*command, "-o", str(out), "--quiet", "--jobs", "1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    places = list(out.glob("*/*/report.json"))
    if not places:
        raise PatchstudyError(done.stdout + done.stderr)
    files = list(outputs(places[0].parent))
    told = [
        f"{folder}: {name} holds {one!r}"
        for name, shown in files
        for one in sorted(known)
        if re.search(rf"(?<![\w.:-]){re.escape(one)}(?![\w:-])", shown)
    ]
    after = {path: sha256(path.read_bytes()).hexdigest() for path in raw}
    changed = [f"{path}: changed" for path in raw if before[path] != after[path]]
    return len(known), len(files), told + changed


def studies(place: Path, scratch: Path) -> Iterator[Path]:
    """Yield every study below a folder; loose files are put into studies made up."""
    ready = {path.parent for path in place.rglob("study.toml")}
    copies = []
    for study in sorted(place.glob("*/*/")):
        shipped = ROOT / "data" / study.parent.name / study.name / "study.toml"
        if shipped.is_file() and study not in ready:
            copies.append(scratch / "lab" / study.parent.name / study.name)
            shutil.copytree(study, copies[-1])
            shutil.copy(shipped, copies[-1])
            ready.add(study)
        elif study in ready:
            yield study
    yield from copies  # only now: one may name another for its noise
    loose = [
        path
        for path in sorted(place.rglob("*"))
        if path.is_file() and not any(one in path.parents for one in ready)
    ]
    yield from made_up(loose, scratch / "made up")


def made_up(files: list[Path], to: Path) -> Iterator[Path]:
    """Put loose files into studies, one for each tool; yield those."""
    found: dict[Path, int] = {}
    for path in files:
        try:
            tool = loaders.load(path).tool
        except CaptureError:
            continue
        folder = to / "tool" / re.sub(r"\W", "-", tool)
        number = found[folder] = found.get(folder, 0) + 1
        variant = ("baseline", "patched")[number % 2]
        run = folder / "device" / variant / "boot-01" / f"run-{number:03}"
        run.mkdir(parents=True)
        shutil.copy(path, run / f"w.{path.name}")
        value = 100 + number % 7
        table = f"metric,unit,value\nthroughput,Mbit/s,{value}\n"
        (run / "w.rate.csv").write_text(table, encoding="utf-8")
        (folder / "study.toml").write_text(DESIGN, encoding="utf-8")
    yield from sorted(found)


def main() -> int:
    """Look through all; return 1 where anything came through."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("places", nargs="+", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    seen = hidden = looked = 0
    told: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        for number, place in enumerate(given.places):
            for study in studies(place.resolve(), Path(scratch, str(number))):
                try:
                    count, files, found = leaks(study, Path(scratch, "out", str(seen)))
                except PatchstudyError as error:
                    print(f"{study.name}: no report: {str(error)[:100]}", flush=True)
                    continue
                seen, hidden, looked = seen + 1, hidden + count, looked + files
                told += found
                print(f"{study.name}: {count} hidden, {len(found)} came through")
                print("".join(f"  {one}\n" for one in found[:9]), end="", flush=True)
    print(
        f"{seen} studies, {hidden} identifiers, {looked} files, "
        f"{len(told)} came through"
    )
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
