"""CPU time of the analysis of one study: ``python benchmarks/analysis.py``.

A simulated study of 40 units and 12 metrics, once through everything between its raw
file and its findings, against SciPy's Welch test alone on the same numbers. CPU time of
this process, the best of some rounds; exit status 1 where it takes too many times as
much, a bar that holds on any machine and whatever else runs there.
"""

import argparse
import csv
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from scipy.stats import ttest_ind

from patchstudy import checks
from patchstudy.compare import compare
from patchstudy.findings import assess
from patchstudy.metrics import METRICS, Better, Scale
from patchstudy.study import Study, open_study

UNITS: Final = 20  # of each variant
COUNT: Final = 12
#: Times the CPU time of SciPy's test alone; some 15 were measured.
LIMIT: Final = 40
#: Metrics that are compared as ratios and have a better direction, first.
NAMES: Final = tuple(
    sorted(
        (name for name, one in METRICS.items() if one.better is not Better.NEITHER),
        key=lambda name: METRICS[name].scale is not Scale.RATIO,
    )[:COUNT]
)


def write(folder: Path) -> None:
    """Write a simulated study whose variants took turns (ABBA)."""
    lines = ['question = "How long does this take?"', 'unit = "run"']
    for number, name in enumerate(NAMES):
        role = "guard" if number else "primary"
        lines += ["[[metrics]]", f'name = "{name}"', f'role = "{role}"']
    (folder / "study.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    rng = np.random.default_rng(1)
    with (folder / "measurements.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(("device", "workload", "variant", "run", "position", "metric",
                      "unit", "value"))  # fmt: skip
        for run in range(UNITS):
            for variant in ("baseline", "patched"):
                turn = (variant == "patched") ^ (run % 2)
                for name in NAMES:
                    value = 0.5 * float(np.exp(rng.normal(0, 0.01)))
                    unit = METRICS[name].unit
                    out.writerow(("device", "tcp", variant, run, 2 * run + turn, name,
                                  unit, repr(value)))  # fmt: skip


def welch_alone(units: pd.DataFrame) -> None:
    """Run SciPy's test on the logarithms of every metric."""
    for _, rows in units.groupby("question"):
        base, new = (
            np.log(rows.loc[rows["variant"] == name, "value"].to_numpy(dtype=float))
            for name in ("baseline", "patched")
        )
        ttest_ind(new, base, equal_var=False).confidence_interval()


def cpu_s(function: Callable[[], object], rounds: int) -> float:
    """Return the least CPU time of some calls, after one that warms up."""
    function()
    found = []
    for _ in range(rounds):
        begin = time.process_time()
        function()
        found.append(time.process_time() - begin)
    return min(found)


def timed(study: Study, rounds: int) -> dict[str, float]:
    """Return seconds of CPU for each part."""
    material = checks.material(study)
    return {
        "SciPy's Welch alone": cpu_s(lambda: welch_alone(material.units), rounds),
        "compare": cpu_s(
            lambda: compare(material.units, material.asked, study.design), rounds
        ),
        "tables, checks, compare, findings": cpu_s(lambda: assess(study), rounds),
        "with reading the raw file": cpu_s(
            lambda: assess(open_study(study.folder)), rounds
        ),
    }


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        found = timed(open_study(Path(folder)), arguments.rounds)
    alone = found["SciPy's Welch alone"]
    print(f"{2 * UNITS} units, {COUNT} metrics, CPU time")
    for name, seconds in found.items():
        print(f"{name:36} {1000 * seconds:7.1f} ms {seconds / alone:7.1f} times")
    return int(max(found.values()) >= LIMIT * alone)


if __name__ == "__main__":
    sys.exit(main())
