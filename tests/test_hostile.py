"""One study in which every name, string and file is hostile, by every command."""

import io
import json
import os
import re
import tarfile
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from patchstudy.cli import main
from patchstudy.findings import assess
from patchstudy.report.results import results
from patchstudy.study import open_study

ATTACK = "<img src=x onerror=pwned()>\"'&|`\x1b[31m\u202e"
MARKUP = f"</td></script><script>pwned()</script>{ATTACK}\n# pwned\n"
#: A name of a folder or file: all bytes but / and NUL are allowed.
NAME = f"{ATTACK}\npwned"
VARIANTS = ("base <script>\"'&|`", "new <img src=x onerror=pwned()>")
FORBIDDEN = set("\x00\x07\x1b\x7f\x9b\u202e\u2066")
REFUSED = Path(__file__).parent / "golden/loaders/iperf3/v3171-jsonstream-refused.jsonl"


def toml(words):
    """Return a TOML string; JSON has the same escapes."""
    return json.dumps(words)


DESIGN = f"""\
question = {toml(MARKUP)}
title = {toml(MARKUP)}
setting = {toml(MARKUP)}
not_measured = [{toml(MARKUP)}]
baseline = {toml(VARIANTS[0])}
patched = [{toml(VARIANTS[1])}]
unit = "run"
block = "boot"
[[metrics]]
name = "throughput"
role = "primary"
margin = "2 %"
[[metrics]]
name = {toml("event:" + ATTACK)}
role = "guard"
margin = "2 %"
[[claims]]
text = {toml(MARKUP)}
metric = "throughput"
device = {toml(NAME)}
change = "+10 %"
"""
MAIL = f"""\
From 1111111111111111111111111111111111111111 Mon Sep 17 00:00:00 2001
From: {ATTACK} <a@example.org>
Subject: [PATCH] net: {ATTACK}
Message-ID: <"><script>pwned()</script>@example.org>
Link: javascript:pwned()
Link: https://lore.kernel.org/"><script>pwned()</script>

{MARKUP}
Signed-off-by: {ATTACK} <a@example.org>
---
 drivers/net/<script>.c | 2 +-

diff --git a/drivers/net/<script>.c b/drivers/net/<script>.c
--- a/drivers/net/<script>.c
+++ b/drivers/net/<script>.c
@@ -1 +1 @@
-a
+{ATTACK}
"""


def archive():
    """Return a tar with a member that climbs, a link, and a raw file."""
    to = io.BytesIO()
    with tarfile.open(fileobj=to, mode="w") as tar:
        for name in ("../../pwned.csv", "/tmp/pwned.csv", f"{ATTACK}.csv"):
            entry = tarfile.TarInfo(name)
            entry.size = 34
            tar.addfile(entry, io.BytesIO(b"metric,unit,value\nthroughput,bit/s,"[:34]))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return to.getvalue()


def raw_files():
    """Yield names and contents of eight runs, profiles, facts and what is no file."""
    frames = f"main;{ATTACK.replace(';', '')};<script>pwned()</script>"
    for run in range(1, 9):
        turn = (run + run // 2) % 2
        stem = f"{NAME}/{VARIANTS[turn]}/boot-{(run + 1) // 2:02}/run-{run:02}/{NAME}."
        told = {"workload": ATTACK, "run": run, "position": run, ATTACK: MARKUP}
        told |= {"kernel": MARKUP, "build_id": f"{turn}{ATTACK}", "hostname": MARKUP}
        yield stem + "run.json", json.dumps(told)
        rate = (100, 110)[turn] + run / 7
        yield (
            f"{stem}x.csv",
            (
                "metric,unit,value,label\n"
                f'throughput,Mbit/s,{rate},"{ATTACK.replace(chr(34), "")}"\n'
                f'"event:{ATTACK.replace(chr(34), chr(34) * 2)}",1,{run},x\n'
            ),
        )
        boot = stem.partition("/run-")[0]
        yield f"{boot}/profile-{run:02}/{NAME}.x.folded", f"{frames} {run}\nmain 9\n"
    refused = REFUSED.read_text(encoding="utf-8")
    told = json.dumps(f"unable to connect - {MARKUP}")[1:-1]
    yield (
        f"{NAME}/{VARIANTS[0]}/boot-09/run-09/{NAME}.iperf3.jsonl",
        refused.replace("Connection refused", told),
    )
    yield f"{NAME}/facts/uname.txt", f"Linux {ATTACK} 6.1.0 {ATTACK}\n"
    yield "patch.mbox", MAIL
    yield f"{NAME}/{'long' * 60}.txt", MARKUP
    yield f"{NAME}/{VARIANTS[0]}/boot-09/run-09/{NAME}.y.tar", archive()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of the study; its own name is hostile too."""
    root = tmp_path_factory.mktemp("hostile")
    secret = root / "secret.csv"
    secret.write_text("metric,unit,value\nthroughput,Mbit/s,7777\n")
    made = root / "data" / "<u>driver" / "p\x1b[31m\u202e<i>"
    made.mkdir(parents=True)
    (made / "study.toml").write_text(DESIGN, encoding="utf-8")
    for name, content in raw_files():
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    boot = made / NAME / VARIANTS[1] / "boot-01"
    (boot / "run-02" / "leak.x.csv").symlink_to(secret)
    (boot / "run-77").symlink_to(root, target_is_directory=True)
    Path(os.fsdecode(os.fsencode(made) + b"/\xff\xfe.txt")).write_bytes(b"\xff\x1b[31m")
    return made


@pytest.fixture(scope="module")
def reports(folder):
    """Return the folder of its reports, and check that no other file was touched."""
    root = folder.parents[2]
    before = tree(root)
    out = root / "reports"
    status = main(["report", str(folder.parents[1]), "-o", str(out), "--quiet"])
    assert status in {0, 2}  # 2: files of the study could not be read
    after = tree(root)
    assert {
        k: v for k, v in after.items() if out not in k.parents and k != out
    } == before
    return out


def tree(root):
    """Return the bytes of every file; links are not followed."""
    return {
        path: path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        for path in root.rglob("*")
    }


class Page(HTMLParser):
    """Collects what a browser would make of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data):
        self.words.append(data)


def harmless(page):
    acting = {"iframe", "object", "embed", "form", "base", "foreignobject"}
    assert not set(page.tags) & acting
    assert page.tags.count("script") <= 1  # our own, named by its digest in the policy
    assert [one for one in page.attributes if one[1].startswith("on")] == []
    for tag, name, value in page.attributes:
        if name in {"src", "href", "xlink:href", "action", "data"}:
            assert re.match(r"data:image/|https://|mailto:|[#\w<%.]", value), (
                tag,
                value,
            )
            assert not re.match(r"\s*(javascript|data:text|vbscript)", value), value
    pictures = [
        value for tag, name, value in page.attributes if (tag, name) == ("img", "src")
    ]
    assert "x" not in pictures


def test_a_page_shows_the_attacks_as_text_and_nothing_acts(reports):
    pages = sorted(reports.rglob("*.html"))
    assert len(pages) == 2
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert not FORBIDDEN & set(text), path
        harmless(Page(text))
        scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        allowed = re.findall(r"script-src 'sha256-([^']+)'", text)
        assert [
            b64encode(sha256(one.encode()).digest()).decode() for one in scripts
        ] == (allowed)
    report = Page(next(reports.glob("*/*/report.html")).read_text(encoding="utf-8"))
    assert "<script>pwned()</script>" in "".join(report.words)
    assert r"\x1b[31m\u202e" in "".join(report.words)


def test_every_file_is_made_and_only_there(reports):
    made = sorted(path.name for path in reports.glob("*/*/[!.]*"))
    kinds = ["html", "ipynb", "json", "pdf", "txt"]
    assert made == [f"report.{kind}" for kind in kinds]
    assert next(reports.glob("*/*/report.pdf")).read_bytes().startswith(b"%PDF")


def test_the_mail_block_is_printable_ascii(reports):
    text = next(reports.glob("*/*/report.txt")).read_bytes()
    assert set(text) <= {10, *range(32, 127)}
    assert max(map(len, text.splitlines())) <= 72


def test_what_lies_outside_the_study_is_in_no_report(reports):
    content = json.loads(next(reports.glob("*/*/report.json")).read_bytes())
    assert "7777" not in json.dumps(content["comparisons"])
    assert not [one for one in content["provenance"]["files"] if "leak" in one]


@pytest.mark.parametrize("command", ["check", "text"])
def test_a_command_prints_no_control_character(command, folder, capsys):
    status = main([command, str(folder)])
    out, err = capsys.readouterr()
    assert status in {0, 1, 2}
    assert out
    assert not FORBIDDEN & set(out + err)
    assert not re.search("[\ud800-\udfff]", out + err)


def test_load_and_compare_print_no_control_character(folder, capsys):
    assert main(["load", str(folder)]) == 2
    sets = [
        sorted(str(path) for path in folder.rglob("*.x.csv") if variant in path.parts)
        for variant in VARIANTS
    ]
    assert main(["compare", *sets[0], "--with", *sets[1]]) in {0, 2}
    out, err = capsys.readouterr()
    assert "pwned" in out + err
    assert not FORBIDDEN & set(out + err)


@pytest.mark.parametrize("coding", ["utf-8", "utf-16"])
def test_half_a_letter_in_json_is_replaced_and_every_command_ends_in_its_way(
    write_study, coding, capsys
):
    half = "\\ud800 \\ud83d\\ude00 \\\\udead"
    told = f'{{"workload": "t{half}", "run": 1, "build_id": "{half}", "k{half}": 1}}'
    counts = '{"bytes": %s, "packets": %s, "errors": 0, "dropped": 0}'
    both = f'{{"rx": {counts}, "tx": {counts}}}'
    link = f'[{{"ifindex": 1, "ifname": "{half}", "stats64": {both}}}]'
    files = {}
    for run in range(1, 5):
        stem = f"d/{('baseline', 'patched')[run % 2]}/boot-1/run-{run}/t."
        files |= {
            f"{stem}run.json": told.encode(coding),
            f"{stem}x.csv": f"metric,unit,value\nthroughput,Mbit/s,{run}\n",
            f"{stem}ip_link.before.json": (link % (4 * (run,))).encode(coding),
            f"{stem}ip_link.after.json": (link % (4 * (run * 9,))).encode(coding),
        }
    folder = write_study(PLAIN, (), files)
    study = open_study(folder)
    facts = study.runs[0].facts
    assert facts["build_id"] == "\ufffd \U0001f600 \\udead"
    labels = [
        one.labels
        for source in study.runs[0].sources
        for one in source.capture.measurements
    ]
    assert "\ufffd \U0001f600 \\udead" in {one.get("interface") for one in labels}
    for command in ("check", "text", "plan"):
        assert main([command, str(folder)]) in {0, 1}
    json.dumps(results(assess(study)), ensure_ascii=False).encode()
    capsys.readouterr()


PLAIN = """\
question = "Is it faster?"
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
margin = "2 %"
"""
