"""Patches as people have them; the mails here are made up, in real shapes."""

import contextlib
import json
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchstudy import patchfile
from patchstudy.findings import assess
from patchstudy.patchfile import PatchError
from patchstudy.report import results, sections
from patchstudy.study import open_study

DIFF = """\
diff --git a/drivers/net/usb/made_up.c b/drivers/net/usb/made_up.c
index 1111111..2222222 100644
--- a/drivers/net/usb/made_up.c
+++ b/drivers/net/usb/made_up.c
@@ -10,3 +10,4 @@ static int made_up_rx(void)
 \tint room;
-\troom = 0;
+\troom = 64;
+\treserve(room);
 \treturn room;
"""
MESSAGE = """\
The buffers have no room for a header, so each packet is copied.

Before: 200 Mbit/s, after: 300 Mbit/s.

Link: https://example.org/thread/1
Signed-off-by: A Person <a@example.org>
---
 drivers/net/usb/made_up.c | 3 ++-
"""


def mail(subject, body=f"{MESSAGE}\n{DIFF}", header=""):
    text = f"From: A Person <a@example.org>\nSubject: {subject}\n{header}\n{body}"
    return text.encode("utf-8")


def test_a_mail_gives_subject_file_driver_link_and_trailers():
    patch = patchfile.read(
        mail("[PATCH net-next] made_up: leave room", header="Message-ID: <1@x>\n")
    )
    assert (patch.tree, patch.version, patch.title, patch.prefix) == (
        "net-next", 1, "made_up: leave room", "made_up",
    )  # fmt: skip
    (file,) = patch.files
    assert (file.path, file.added, file.removed) == ("drivers/net/usb/made_up.c", 2, 1)
    assert (patch.driver, patch.subsystem) == ("made_up", "usb")
    assert patch.links == ("https://example.org/thread/1",)
    assert patch.trailers == (
        "Link: https://example.org/thread/1",
        "Signed-off-by: A Person <a@example.org>",
    )
    assert patch.message_id == "1@x"


@pytest.mark.parametrize(
    ("tags", "tree", "version", "number", "of"),
    [
        ("PATCH net-next v3 02/13", "net-next", 3, 2, 13),
        ("net-next PATCH v5 0/7", "net-next", 5, 0, 7),
        ("PATCH v2 net", "net", 2, None, None),
        ("RFC PATCH bpf-next V2 0/3", "bpf-next", 2, 0, 3),
        ("net-next,1/6", "net-next", 1, 1, 6),
        ("PATCH net-next1/2", "net-next", 1, 1, 2),
        ("PATCH AUTOSEL 4.14 08/13", None, 1, 8, 13),
        ("PATCH", None, 1, None, None),
    ],
)
def test_tags_of_a_subject_in_any_order(tags, tree, version, number, of):
    patch = patchfile.read(mail(f"[{tags}] made_up: leave room"))
    found = (patch.tree, patch.version, patch.number, patch.of)
    assert found == (tree, version, number, of)
    assert patch.rfc is ("RFC" in tags)


def test_a_folded_and_encoded_header_is_read():
    patch = patchfile.read(
        mail("=?utf-8?q?=5BPATCH=5D_made=5Fup=3A_gr=C3=B6=C3=9Fer?=\n and wider")
    )
    assert patch.title == "made_up: größer and wider"


def test_a_pasted_mail_has_its_subject_in_the_first_line():
    patch = patchfile.read(f"[PATCH] made_up: x\n\n{MESSAGE}\n{DIFF}".encode())
    assert (patch.subject_from, patch.title) == ("first line", "made_up: x")


def test_a_bare_diff_has_files_and_no_subject():
    patch = patchfile.read(DIFF.encode())
    assert (patch.subject, patch.version, len(patch.files)) == (None, None, 1)


def test_of_a_thread_the_patch_is_taken_not_the_reply():
    reply = mail("Re: [PATCH] made_up: x", body="> +\troom = 64;\n\nApplied, thanks!\n")
    envelope = b"From x@example.org Thu Jan  7 00:00:00 2027\n"
    thread = envelope + reply + b"\n" + envelope + mail("[PATCH] made_up: x")
    patch = patchfile.read(thread)
    assert not patch.reply
    assert len(patch.files) == 1


def test_format_patch_names_its_commit():
    sha = "0123456789" * 4
    data = f"From {sha} Mon Sep 17 00:00:00 2001\n".encode() + mail("[PATCH] a: b")
    assert patchfile.read(data).sha == sha


def test_a_quoted_diff_in_a_reply_is_no_diff():
    body = textwrap.indent(DIFF, "> ") + "\nWhy 64?\n"
    patch = patchfile.read(mail("Re: [PATCH] made_up: x", body=body))
    assert (patch.reply, patch.files, patch.trailers) == (True, (), ())


def test_lines_with_colons_elsewhere_are_no_trailers():
    body = f"T:  Bus=02 Lev=01\nP:  Vendor=1199\nand a sentence.\n---\n{DIFF}"
    assert patchfile.read(mail("[PATCH] a: b", body=body)).trailers == ()


def test_base_commit_and_change_id_are_found_behind_the_diff():
    tail = "--\n2.39\n\nbase-commit: 0123456789ab\nchange-id: 20270107-made-up-1\n"
    patch = patchfile.read(mail("[PATCH] a: b", body=f"{MESSAGE}\n{DIFF}{tail}"))
    assert patch.base_commit == "0123456789ab"
    assert patch.change_id == "20270107-made-up-1"


@pytest.mark.parametrize(
    ("path", "driver", "subsystem"),
    [
        ("drivers/net/ethernet/sis/sis900.c", "sis900", "ethernet"),
        ("drivers/net/ethernet/intel/igc/igc_main.c", "igc", "ethernet"),
        ("drivers/net/ethernet/broadcom/bgmac-bcma.c", "bgmac", "ethernet"),
        ("drivers/net/usb/qmi_wwan.c", "qmi_wwan", "usb"),
        ("drivers/net/wwan/t7xx/t7xx_hif.c", "t7xx", "wwan"),
        ("drivers/net/wireless/mediatek/mt76/mt7915/mac.c", "mt7915", "wireless"),
        ("net/dsa/tag_qca.c", None, "net/dsa"),
        ("include/linux/skbuff.h", None, None),
    ],
)
def test_the_path_names_driver_and_subsystem(path, driver, subsystem):
    assert patchfile.place([path]) == (driver, subsystem)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b" \n", "an empty patch file"),
        (DIFF.replace("@@ -10,3 +10,4 @@", "@@ -10,9 +10,4 @@").encode(), "is broken"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(data, words):
    with pytest.raises(PatchError, match=words):
        patchfile.read(data)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.binary(max_size=400))
def test_any_bytes_are_a_patch_or_refused(data):
    with contextlib.suppress(PatchError):
        assert patchfile.read(data).files == ()


def test_every_shared_shape_gives_what_was_worked_out(shared):
    folder = shared / "patches"
    for name, expected in json.loads(
        (folder / "patches_expected.json").read_text(encoding="utf-8")
    ).items():
        patch = patchfile.read((folder / name).read_bytes())
        assert patch.subject == expected["subject"], name
        assert list(patch.trailers) == expected["trailers"], name
        assert [one.path for one in patch.files] == [
            one["path"] for one in expected["files"]
        ], name
        for key, mine in (("n", "number"), ("of", "of"), ("tree", "tree")):
            assert getattr(patch, mine) == expected.get(key), name
        assert patch.base_commit == expected["base_commit"], name
        assert patch.sha == expected["format_patch_sha"], name


STUDY = """\
question = "Is it faster?"
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
"""


def test_a_study_names_its_patch_and_none_of_the_people(write_study, turns):
    folder = write_study(STUDY, turns([1, 2, 3], [2, 3, 4]))
    (folder / "patch.mbox").write_bytes(mail("[PATCH net-next] made_up: leave room"))
    assessment = assess(open_study(folder))
    shown = " ".join(one.text for one in sections.study(assessment))
    assert "[PATCH net-next] made_up: leave room, driver made_up" in shown
    content = results.results(assessment)
    assert content["patch"]["files"] == ["drivers/net/usb/made_up.c"]
    assert "Person" not in shown + json.dumps(content)


def test_a_broken_patch_is_named_and_the_study_goes_on(write_study, turns):
    folder = write_study(STUDY, turns([1, 2, 3], [2, 3, 4]))
    (folder / "patch.mbox").write_bytes(b" ")
    (left,) = [one for one in open_study(folder).leftovers if one.broken]
    assert (left.path, left.reason[:10]) == ("patch.mbox", "an empty p")
