"""A large study, simulated here, still makes a page that can be mailed."""

import random

from patchstudy.report.batch import shipped
from patchstudy.report.html import to_html
from patchstudy.report.run import Run, execute

LARGEST_BYTE = 1_500_000
DESIGN = """\
question = "Simulated: is the page small enough?"
unit = "run"
block = "block"
[[metrics]]
name = "throughput"
role = "primary"
margin = "2 %"
[[metrics]]
name = "cpu_busy"
role = "guard"
margin = "5 pp"
[[metrics]]
name = "rtt_p99"
role = "guard"
margin = "10 %"
"""
METRICS = {
    "throughput": ("Mbit/s", 300.0, 315.0, 3.0),
    "cpu_busy": ("1", 0.8, 0.78, 0.01),
    "rtt_p99": ("ms", 4.0, 4.1, 0.2),
}


def simulated_rows(seed):
    """Rows of 2 devices, 4 workloads and 40 runs of each variant, in 20 blocks."""
    draw = random.Random(seed)
    return [
        {
            "device": device,
            "workload": workload,
            "variant": variant,
            "block": block,
            "run": run,
            "position": 2 * run + (side if run % 2 else 1 - side),
            "metric": metric,
            "unit": unit,
            "value": f"{draw.gauss((base, new)[side], sd):.6g}",
        }
        for device in ("simulated-a", "simulated-b")
        for workload in ("tcp-dl", "tcp-ul", "udp-dl", "udp-ul")
        for run in range(1, 41)
        for block in [(run + 1) // 2]
        for side, variant in enumerate(("baseline", "patched"))
        for metric, (unit, base, new, sd) in METRICS.items()
    ]


def test_a_page_of_two_devices_four_workloads_and_forty_runs_each(write_study):
    folder = write_study(DESIGN, simulated_rows(seed=7), name="simulated/large")
    run = Run(
        notebook=shipped("patch.ipynb"),
        parameters={"study": str(folder)},
        cwd=folder.parent,
        timeout_s=600,
    )
    page = to_html(execute(run), title="simulated/large")
    assert page.count("simulated-b") > 40
    assert len(page.encode("utf-8")) < LARGEST_BYTE
