"""Look for what ``--redact`` may not let through, in reports of real raw files.

The identifiers are found by this script's own rules, in the bytes of the raw files and
not in what the loaders made of them: MAC addresses, public IP addresses, names of hosts
(of uname, sysstat, JSON) and of users (``/home/...``, ``name@host``). Then results,
text block and every section of the report of each study are made with names hidden, and
searched for them. Studies are taken as they are; loose files become studies made up of
them, one for each tool, whose numbers mean nothing.

    python benchmarks/redact.py ../shared/lab ../shared/corpus    # about five minutes
"""

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from patchstudy import loaders
from patchstudy.errors import CaptureError, PatchstudyError
from patchstudy.findings import Assessment, assess
from patchstudy.report import sections
from patchstudy.report.results import written
from patchstudy.report.text import text
from patchstudy.study import hide, open_study

ROOT: Final = Path(__file__).parents[1]
SECTIONS: Final = (
    "study", "changes", "guards", "forest", "all_runs", "provenance", "files", "facts",
    "profile", "treatment", "doubts", "bottleneck",
)  # fmt: skip
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
    re.compile(rb"(?<![\w.@/-])([a-z][a-z0-9_-]*)@[a-z0-9][\w.-]*(?=[:$# ])"),
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


def outputs(assessment: Assessment) -> Iterator[tuple[str, str]]:
    """Yield what a report shows, by name."""
    yield "report.json", written(assessment).decode("utf-8")
    yield "report.txt", text(assessment)
    for name in SECTIONS:
        if made := getattr(sections, name, None):
            yield name, repr(made(assessment))


def leaks(folder: Path) -> tuple[int, list[str]]:
    """Return how many identifiers the raw files hold, and where one came through."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    before = {path: sha256(path.read_bytes()).hexdigest() for path in files}
    known = {one for path in files for one in identifiers(path.read_bytes())}
    study = open_study(folder)
    own = f"{study.name} {study.design!r} {[run.name for run in study.runs]}".lower()
    known = {one for one in known if one.lower() not in own}
    told = [
        f"{folder}: {name} holds {one!r}"
        for name, shown in outputs(assess(hide(study)))
        for one in sorted(known)
        if re.search(rf"(?<![\w.:-]){re.escape(one)}(?![\w:-])", shown)
    ]
    after = {path: sha256(path.read_bytes()).hexdigest() for path in files}
    changed = [f"{path}: changed" for path in files if before[path] != after[path]]
    return len(known), told + changed


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
    seen = hidden = 0
    told: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        for number, place in enumerate(given.places):
            for study in studies(place.resolve(), Path(scratch, str(number))):
                try:
                    count, found = leaks(study)
                except PatchstudyError as error:
                    print(f"{study.name}: no report: {str(error)[:100]}", flush=True)
                    continue
                seen, hidden = seen + 1, hidden + count
                told += found
                print(f"{study.name}: {count} hidden, {len(found)} came through")
                print("".join(f"  {one}\n" for one in found[:9]), end="", flush=True)
    print(f"{seen} studies, {hidden} identifiers, {len(told)} came through")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
