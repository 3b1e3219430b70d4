"""A new warning of the kernel under the patch is a veto by rule."""

import json

import pytest

from patchstudy.findings import assess
from patchstudy.sentences import KERNEL_VETO
from patchstudy.study import open_study

DESIGN = """\
question = "Is it faster?"
patched = ["patched", "other"]
unit = "run"
block = "boot"
[[metrics]]
name = "throughput"
role = "primary"
margin = "2 %"
"""
QUIET = "[    0.000000] Linux version 6.1.0 (x) #1 SMP\n"
SPLAT = "[   12.000001] WARNING: CPU: 0 PID: 77 at net/core/dev.c:12 f+0x1/0x2\n"


@pytest.fixture
def decided(write_study):
    """Return a function: a study in which one variant warns, assessed."""

    def of(warning):
        files = {}
        for boot in range(1, 7):
            for turn, variant in enumerate(("baseline", "patched", "other")):
                place = f"d/{variant}/boot-{boot}/run-1/t."
                at = 3 * boot + (turn if boot % 2 else 2 - turn)
                rate = 100 + 10 * turn + boot * 7 % 5 / 10
                files[place + "run.json"] = json.dumps({"position": at})
                files[place + "x.csv"] = (
                    f"metric,unit,value\nthroughput,Mbit/s,{rate}\n"
                )
                said = QUIET + (SPLAT if variant == warning and boot == 3 else "")
                files[place + "dmesg.txt"] = said
        return assess(open_study(write_study(DESIGN, (), files)))

    return of


@pytest.mark.parametrize(
    ("warning", "decision"),
    [("", "accept"), ("baseline", "accept"), ("patched", "veto"), ("other", "accept")],
)
def test_only_a_warning_of_the_patched_kernel_is_a_veto(decided, warning, decision):
    assert decided(warning).decision == decision


def test_the_veto_quotes_the_warning_and_spares_the_other_variant(decided):
    found = decided("patched")
    reasons = {one.variant: one.reasons for one in found.devices}
    decisions = {one.variant: str(one.decision) for one in found.devices}
    assert "'WARNING: CPU: 0 PID: 77 at net/core/dev.c:12" in reasons["patched"][0]
    assert decisions == {"patched": "veto", "other": "accept"}
    assert found.sentence.startswith(f"{KERNEL_VETO}, patched: the kernel warns")
    assert str(found.findings[0].verdict) == "better"
