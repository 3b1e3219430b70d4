"""What large studies cost: python benchmarks/large.py [--copies N] [--traces N].

Reports a study of over 10,000 raw files (the devices of ``qmi_wwan/qmap-headroom``,
copied with changed rates) and one with 2 GB of traces (``veth/gro`` with further
profiles, a real one repeated to 250 MB each), and prints the time, the CPU seconds and
the memory of the largest process. Both hold simulated data and are thrown away.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

from batch import ROOT, change, report
from traces import repeated

PROFILE = "perf_script/cap-multi-events.txt"


def many_files(place: Path, copies: int) -> Path:
    """Copy every device of a study under further names."""
    study = place / "qmi_wwan" / "qmap-headroom"
    shutil.copytree(ROOT / "data" / "qmi_wwan" / "qmap-headroom", study)
    for device in [one for one in study.iterdir() if one.is_dir()]:
        for number in range(1, copies):
            target = study / f"{device.name}-{number}"
            shutil.copytree(device, target)
            for path in target.rglob("*.iperf3.json"):
                change(path, 1 + number / 1e4)
    return study


def large_traces(place: Path, each: int) -> Path:
    """Add profiles of 250 MB to both variants of a study."""
    study = place / "veth" / "gro"
    shutil.copytree(ROOT / "data" / "veth" / "gro", study)
    (device,) = (one for one in study.iterdir() if one.is_dir())
    for variant in ("baseline", "patched"):
        for number in range(each):
            folder = device / variant / f"block-{20 + number}" / "profile-01"
            folder.mkdir(parents=True)
            repeated(folder / "tcp.perf_script.txt", PROFILE, 250_000_000)
    return study


def measure(study: Path, out: Path) -> str:
    """Report a study; say what it took."""
    files = [one for one in study.rglob("*") if one.is_file()]
    size = sum(one.stat().st_size for one in files) / 1e6
    cost, status, _, told = report(study, out, "--jobs", "1")
    page = next(out.rglob("report.html"), None)
    shown = f", page {page.stat().st_size / 1e6:.1f} MB" if page else ""
    return (
        f"{len(files)} raw files, {size:.0f} MB: exit {status}, {cost.wall:.0f} s, "
        f"{cost.cpu:.0f} CPU s, largest process {cost.peak:.0f} MiB unshared{shown}\n"
        + told
    )


def main() -> None:
    """Print one line a study."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--copies", type=int, default=5, help="of each device")
    words.add_argument("--traces", type=int, default=4, help="of 250 MB, each variant")
    asked = words.parse_args()
    for make, count in ((many_files, asked.copies), (large_traces, asked.traces)):
        if count:
            with tempfile.TemporaryDirectory(prefix="patchstudy-benchmark-") as name:
                place = Path(name)
                study = make(place / "data", count)
                print(measure(study, place / "out"), flush=True)


if __name__ == "__main__":
    main()
