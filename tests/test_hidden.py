"""Names and addresses of raw files stay out of what is sent around, if wished."""

import json
import shutil

import pytest

from patchstudy.cli import main
from patchstudy.findings import assess
from patchstudy.report.text import text
from patchstudy.study import hide, open_study

DESIGN = """\
question = "Is it faster?"
unit = "run"
block = "boot"
[[metrics]]
name = "throughput"
role = "primary"
margin = "2 %"
"""
BASE = [100.21, 99.82, 100.53, 99.94]
FASTER = [110.22, 109.83, 110.54, 109.95]
SECRETS = (
    "labserver7", "jdoe", "de:ad:be:ef:00:01", "8.8.4.4", "2600:1901::1",
)  # fmt: skip
STAY = ("192.168.7.9", "fe80::1", "10.77.2.2", "127.0.0.1")


@pytest.fixture
def study(write_study):
    """Return the folder of a study whose raw files hold names and addresses."""
    files = {}
    for run in range(1, 5):
        for turn, variant in enumerate(("baseline", "patched")):
            stem = f"d/{variant}/boot-{run:02}/run-{run:02}/t."
            rate = (BASE, FASTER)[turn][run - 1]
            told = {
                "workload": "t",
                "run": run,
                "position": 2 * run - 1 + (turn if run % 2 else 1 - turn),
                "hostname": "labserver7.example.net",
                "build_id": variant,
                "mac": "de:ad:be:ef:00:01",
                "home": f"/home/jdoe/{variant}",
                "commands": {"client": "ssh jdoe@labserver7 iperf3 -c 8.8.4.4"},
                "peer": f"2600:1901::1 {' '.join(STAY)} {variant}",
            }
            files[stem + "run.json"] = json.dumps(told)
            files[stem + "x.csv"] = f"metric,unit,value\nthroughput,Mbit/s,{rate}\n"
    return write_study(DESIGN, (), files, "driver/patch")


def everything(assessment):
    """Return all words that any report of this assessment may hold."""
    return repr([assessment.study, assessment.doubts, assessment.findings])


def test_every_name_and_address_is_replaced_and_the_rest_stays(study):
    found = hide(open_study(study))
    told = everything(assess(found))
    assert [one for one in SECRETS if one in told] == []
    assert [one for one in STAY if one not in told] == []
    assert found.hidden == 6  # the host with and without its domain
    facts = found.runs[0].facts
    assert facts["commands"] == {"client": "ssh user-1@host-1 iperf3 -c address-2"}
    assert facts["mac"] == "mac-1"


def test_a_name_is_replaced_by_the_same_everywhere(study):
    found = hide(open_study(study))
    hosts = {run.facts["hostname"] for run in found.runs}
    assert hosts == {"host-2"}


def test_the_numbers_are_those_of_the_raw_files(study):
    plain, hidden = (assess(x(open_study(study))) for x in (lambda x: x, hide))
    assert [one.comparison.change for one in plain.findings] == [
        one.comparison.change for one in hidden.findings
    ]
    assert plain.study.files == hidden.study.files


#: What a fact says, and what of it no report may say.
FACTS = {
    "serial_number": ("SN12345678", "SN12345678"),
    "imei": (356938035643809, "356938035643809"),
    "machine_id": ("0123456789abcdef0123456789abcdef", "0123456789abcdef"),
    "product_uuid": ("11111111-2222-3333-4444-555555555555", "11111111"),
    "kernel_log": ("usb 1-1: SerialNumber: XK77123", "XK77123"),
    "cmdline": ("root=PARTUUID=0badcafe-01 ro", "0badcafe"),
    "switch": ("port of dead.beef.0002", "dead.beef"),
    "own": ("fe80::dcad:beff:feef:3 dev eth0", "dcad:beff"),
    "peer6": ("2a00::77", "2a00::77"),
    "owner": ("Jane Doe", "Jane Doe"),
    "login": ("jdoe2", "jdoe2"),
}


def test_serial_numbers_persons_and_what_is_made_of_a_mac_address_go(study):
    for path in study.rglob("*.run.json"):
        told = json.loads(path.read_text()) | {k: v for k, (v, _) in FACTS.items()}
        path.write_text(json.dumps(told))
    told = everything(assess(hide(open_study(study))))
    assert [one for _, one in FACTS.values() if one in told] == []
    assert [one for one in SECRETS if one in told] == []


def test_a_host_in_the_name_of_a_file_or_of_a_process_goes(study):
    for path in sorted(study.rglob("*.x.csv")):
        path.rename(path.with_name("t.labserver7.csv"))
    boot = study / "d/baseline/boot-01"
    (boot / "profile-01").mkdir()
    stacks = "labserver7-job;main;labserver7 9\nswapper;idle 1\n"
    (boot / "profile-01/t.labserver7.folded").write_text(stacks)
    (boot / "run-01/t.labserver7.txt").write_text("no tool wrote this")
    found = hide(open_study(study))
    told = everything(assess(found)) + repr(found.leftovers)
    assert "labserver7" not in told
    assert "d/baseline/boot-01/run-01/t.host-1.csv" in found.files


def test_whose_home_a_study_lies_in_is_told_only_without_redact(study, tmp_path):
    home = tmp_path / "home" / "jdoe"
    home.mkdir(parents=True)
    shutil.copytree(study, home / "driver" / "patch")
    out = tmp_path / "out"
    order = ["report", str(home), "-o", str(out), "--quiet", "--redact"]
    assert main(order) == 0
    for path in sorted((out / "driver/patch").glob("report.*")):
        assert b"jdoe" not in path.read_bytes(), path
    place = str(home / "driver" / "patch")
    assert main(["verify", str(out), "--data", place]) == 0


def test_nothing_to_hide_changes_nothing(data):
    study = open_study(data / "veth/gro")
    assert hide(study) is study


@pytest.mark.parametrize("name", ["router", "patched", "driver", "t"])
def test_a_name_that_the_study_itself_uses_stays(write_study, name):
    files = {
        f"router/{variant}/boot-1/run-1/t.{kind}": content
        for variant in ("baseline", "patched")
        for kind, content in (
            ("x.csv", "metric,unit,value\nthroughput,Mbit/s,9.1\n"),
            ("run.json", json.dumps({"workload": "t", "run": 1, "hostname": name})),
        )
    }
    study = open_study(write_study(DESIGN, (), files))
    assert hide(study) is study


def test_a_version_with_four_numbers_below_a_private_net_is_no_address(write_study):
    files = {
        f"d/{variant}/boot-1/run-1/t.{kind}": content
        for variant in ("baseline", "patched")
        for kind, content in (
            ("x.csv", "metric,unit,value\nthroughput,Mbit/s,9.1\n"),
            ("run.json", json.dumps({"workload": "t", "run": 1, "fw": "v1.2.3.4.5"})),
        )
    }
    study = open_study(write_study(DESIGN, (), files))
    assert hide(study) is study


def test_the_block_for_the_list_names_nobody_unless_asked(study, capsys):
    assert main(["text", str(study)]) == 0
    mail = capsys.readouterr().out
    assert [one for one in SECRETS if one in mail] == []
    assert main(["text", str(study), "--no-redact"]) == 0
    assert "labserver7" not in mail
    assert text(assess(hide(open_study(study)))) == mail


def test_no_file_of_a_redacted_report_holds_a_secret(study, tmp_path):
    raw = {path: path.read_bytes() for path in study.rglob("*") if path.is_file()}
    out = tmp_path / "reports"
    data = study.parents[1]
    assert main(["report", str(data), "-o", str(out), "--redact", "--quiet"]) == 0
    for path in sorted((out / "driver/patch").iterdir()):
        held = path.read_bytes()
        assert [one for one in SECRETS if one.encode() in held] == [], path
    content = json.loads((out / "driver/patch/report.json").read_text())
    assert content["provenance"]["hidden_names"] == 6
    html = (out / "driver/patch/report.html").read_text(encoding="utf-8")
    assert "addresses, of the raw files: 6 replaced" in html
    assert {path: path.read_bytes() for path in raw} == raw
