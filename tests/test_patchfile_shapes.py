"""Harder shapes of patch mails; every mail here is made up."""

import base64
import contextlib
import quopri
from email.message import EmailMessage

import pytest

from patchstudy import patchfile
from patchstudy.patchfile import PatchError

HUNK = """\
@@ -10,3 +10,4 @@ static int made_up_rx(void)
 \tint room;
-\troom = 0;
+\troom = 64;
+\treserve(room);
 \treturn room;
"""
PATH = "drivers/net/usb/made_up.c"
DIFF = f"diff --git a/{PATH} b/{PATH}\n--- a/{PATH}\n+++ b/{PATH}\n{HUNK}"
TEXT = f"""\
The buffers have no room: größer now.

Before: 200 Mbit/s, after: 300 Mbit/s.

Signed-off-by: A Person <a@example.org>
---
 {PATH} | 3 ++-

{DIFF}--\x20
2.39.5
"""
SUBJECT = "[PATCH net-next] made_up: leave room"


def raw(body=TEXT, subject=SUBJECT, *, header=""):
    """Return the bytes of a mail."""
    text = f"From: A Person <a@example.org>\nSubject: {subject}\n{header}\n{body}"
    return text.encode()


def check(patch, *, files=1):
    """Say that the patch above was read whole."""
    assert (patch.title, patch.tree) == ("made_up: leave room", "net-next")
    assert len(patch.files) == files
    file = patch.files[0]
    assert (file.path, file.added, file.removed) == (PATH, 2, 1)
    assert "größer now" in patch.text
    assert patch.trailers == ("Signed-off-by: A Person <a@example.org>",)


def test_a_body_in_base64():
    body = base64.encodebytes(TEXT.encode()).decode()
    header = (
        "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n"
        "Content-Transfer-Encoding: base64\n"
    )
    check(patchfile.read(raw(body, header=header)))


def test_a_body_in_quoted_printable_and_latin_1():
    body = quopri.encodestring(TEXT.encode("latin-1")).decode("ascii")
    header = (
        "MIME-Version: 1.0\nContent-Type: text/plain; charset=iso-8859-1\n"
        "Content-Transfer-Encoding: quoted-printable\n"
    )
    check(patchfile.read(raw(body, header=header)))


def mime(**parts):
    """Return a mail of the parts that are named."""
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "A Person <a@example.org>", SUBJECT
    if "plain" in parts:
        mail.set_content(parts["plain"])
    if "html" in parts:
        add = mail.add_alternative if "plain" in parts else mail.set_content
        add(parts["html"], subtype="html")
    for name, data in parts.get("attached", {}).items():
        mail.add_attachment(
            data.encode(), maintype="application", subtype="octet-stream", filename=name
        )
    return mail.as_bytes()


def test_of_html_and_text_the_text_is_read():
    check(patchfile.read(mime(plain=TEXT, html="<p>other <b>words</b></p>")))


def test_of_html_alone_its_text_is_read():
    escaped = TEXT.replace("&", "&amp;").replace("<", "&lt;")
    check(patchfile.read(mime(html=f"<html><pre>{escaped}</pre></html>")))


def test_a_patch_that_is_attached_is_read_behind_the_text():
    head, _, _ = TEXT.partition("---\n")
    check(patchfile.read(mime(plain=head, attached={"0001-room.patch": DIFF})))


def test_pictures_that_are_attached_are_left_out():
    patch = patchfile.read(mime(plain=TEXT, attached={"fig.jpeg": "+++ no text"}))
    check(patch)
    assert "no text" not in patch.text


@pytest.mark.parametrize("delsp", ["", "; delsp=yes"])
def test_flowed_text_is_joined_and_its_diff_left_whole(delsp):
    stuffed = "\n".join(
        f" {line}" if line.startswith(" ") else line for line in DIFF.split("\n")
    )
    soft = "more " if not delsp else "more  "
    body = (
        f"größer now, and \n{soft}\nwords.\n\nSigned-off-by: A Person <a@example.org>"
    )
    header = f"Content-Type: text/plain; charset=utf-8; format=flowed{delsp}\n"
    patch = patchfile.read(raw(f"{body}\n---\n{stuffed}", header=header))
    check(patch)
    assert "and more words." in patch.text.replace("andmore", "and more")


def test_line_ends_of_other_systems():
    check(patchfile.read(raw().replace(b"\n", b"\r\n")))


def test_a_quoted_from_line_of_a_mailbox():
    body = TEXT.replace("Before:", ">From here on.\n\n>>From there.\n\nBefore:")
    patch = patchfile.read(b"From x Thu Jan  7 00:00:00 2027\n" + raw(body))
    check(patch)
    assert "\nFrom here on.\n" in patch.text
    assert "\n>From there.\n" in patch.text


def test_a_line_of_the_text_that_begins_with_from_is_no_new_message():
    body = TEXT.replace("Before:", "From the tests of 2026\nBefore:")
    check(patchfile.read(b"From x Thu Jan  7 00:00:00 2027\n" + raw(body)))


def test_a_cover_letter_and_its_patches_in_one_mailbox():
    cover = raw("Numbers.\n", "[PATCH net-next 0/2] made_up: faster")
    envelope = b"From git@z Thu Jan  7 00:00:00 2027\n"
    ones = [cover, *(raw(subject=f"[PATCH net-next {n}/2] a: {n}") for n in (1, 2))]
    data = b"\n".join(envelope + one for one in ones)
    assert [one.number for one in patchfile.read_all(data)] == [0, 1, 2]
    assert patchfile.read(data).number == 1


SCISSORS = ("-- >8 --", "---8<---", "- - - >8 - - - cut here - - -", "8< ------- >8")


@pytest.mark.parametrize("line", SCISSORS)
def test_a_patch_below_scissors_in_a_reply(line):
    body = f"Not like this:\n\n> +\troom = 64;\n\n{line}\nSubject: {SUBJECT}\n\n{TEXT}"
    patch = patchfile.read(raw(body, "Re: [PATCH v2] made_up: other"))
    check(patch)
    assert (patch.subject_from, patch.reply) == ("body", False)
    assert "Not like this" not in patch.text


def test_headers_at_the_top_of_a_body_are_cut_off():
    body = f"From: Other Person <b@example.org>\nDate: today\n\n{TEXT}"
    patch = patchfile.read(raw(body))
    check(patch)
    assert patch.subject_from == "header"
    assert "Other Person" not in patch.text


def test_a_table_with_scissors_in_it_is_no_cut():
    body = TEXT.replace("Before:", "flow 8< latency\n>8 | -\nBefore:")
    assert "The buffers" in patchfile.read(raw(body)).text


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("Re: [PATCH net-next v3 02/13 RESEND] a: b", ("net-next", 3, 2, 13, False)),
        ("[net-next,v2,3/7] a: b", ("net-next", 2, 3, 7, False)),
        ("[PATCH 6.1.y] a: b", ("6.1.y", 1, None, None, False)),
        ("[PATCH 5.15.y v2 1/2] a: b", ("5.15.y", 2, 1, 2, False)),
        ("[RFC PATCH bpf-next] a: b", ("bpf-next", 1, None, None, True)),
        ("[RFCv2 net-next] a: b", ("net-next", 2, None, None, True)),
        ("[PATCHv3 net] a: b", ("net", 3, None, None, False)),
        ("[PATCH][net-next][v4] a: b", ("net-next", 4, None, None, False)),
        ("[PATCH 2 of 5] a: b", (None, 1, 2, 5, False)),
        ("[EXTERNAL] Re: [PATCH net v2] a: b", ("net", 2, None, None, False)),
        ("RE: AW: [PATCH net] a: b", ("net", 1, None, None, False)),
        ("[PATCH RESEND v1 iwl-next 1/1] a: b", ("iwl-next", 1, 1, 1, False)),
        ("[PATCH -next] a: b", (None, 1, None, None, False)),
        ("[PATCH wireless-next,v6,10/12] a: b", ("wireless-next", 6, 10, 12, False)),
        ("a: b", (None, 1, None, None, False)),
    ],
)
def test_tags_as_people_write_them(subject, expected):
    patch = patchfile.read(raw(subject=subject))
    assert patch.title == "a: b"
    found = (patch.tree, patch.version, patch.number, patch.of, patch.rfc)
    assert found == expected
    assert patch.reply is ("re:" in subject.lower())


@pytest.mark.parametrize(
    ("header", "title"),
    [
        ("=?iso-8859-1?Q?=5BPATCH=5D_a=3A_gr=F6=DFer?=", "a: größer"),
        ("=?utf-8?b?W1BBVENIXSBhOiBncsO2w59lcg==?=", "a: größer"),
        ("[PATCH] a: =?utf-8?q?gr=C3=B6?=\n =?utf-8?q?=C3=9Fer?=", "a: größer"),
        ("[PATCH] a: größer", "a: größer"),
        ("[PATCH]\n\ta: folded\n  twice", "a: folded twice"),
        ("=?made-up?q?=5BPATCH=5D_a?=", None),
    ],
)
def test_encoded_and_folded_subjects(header, title):
    patch = patchfile.read(raw(subject=header))
    assert title is None or patch.title == title
    assert len(patch.files) == 1


def test_a_subject_in_bytes_that_are_no_utf_8():
    patch = patchfile.read(raw().replace(b"leave room", b"gr\xf6\xdfer"))
    assert patch.title is not None
    assert patch.title.startswith("made_up: gr")


# ---- diffs --------------------------------------------------------------------------

RENAME = """\
diff --git a/drivers/net/old.c b/drivers/net/usb/new.c
similarity index 100%
rename from drivers/net/old.c
rename to drivers/net/usb/new.c
"""
MODE = "diff --git a/tools/x.sh b/tools/x.sh\nold mode 100644\nnew mode 100755\n"
BINARY = """\
diff --git a/fw.bin b/fw.bin
new file mode 100644
index 0000000..1234567
GIT binary patch
literal 10
RcmZQzVB-J)0ZagfJ^&N|0ssI2

literal 0
HcmV?d00001

"""
DELETED = """\
diff --git a/drivers/net/gone.c b/drivers/net/gone.c
deleted file mode 100644
--- a/drivers/net/gone.c
+++ /dev/null
@@ -1,2 +0,0 @@
-one
-two
"""


def test_renames_modes_binaries_and_deletions():
    patch = patchfile.read(raw(f"Words.\n---\n{RENAME}{MODE}{BINARY}{DELETED}{DIFF}"))
    rename, mode, binary, deleted, last = patch.files
    assert (rename.path, rename.old) == ("drivers/net/usb/new.c", "drivers/net/old.c")
    assert (mode.path, mode.added, mode.removed, mode.old) == ("tools/x.sh", 0, 0, None)
    assert (binary.path, binary.binary, binary.new) == ("fw.bin", True, True)
    assert (deleted.deleted, deleted.removed) == (True, 2)
    assert last.path == PATH
    assert (patch.driver, patch.subsystem) == ("new", "usb")


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("a/my dir/x y.c", "b/my dir/x y.c", "my dir/x y.c"),
        ('"a/f\\303\\274r.c"', '"b/f\\303\\274r.c"', "für.c"),
        (f"linux-5.4.orig/{PATH}\t2019-01-01", f"linux-5.4/{PATH}\t2019-01-02", PATH),
        (f"{PATH}.orig", PATH, PATH),
        (f"a/{PATH}\t", f"b/{PATH}\t", PATH),
        ("/dev/null", f"b/{PATH}", PATH),
    ],
)
def test_paths_as_tools_write_them(old, new, path):
    patch = patchfile.read(f"--- {old}\n+++ {new}\n{HUNK}".encode())
    assert [one.path for one in patch.files] == [path]
    assert patch.files[0].added == 2


def test_what_stands_behind_a_diff_is_no_part_of_it():
    tail = "_______________\nlist mailing list\n+ more\n- less\nhttps://example.org/l\n"
    check(patchfile.read(raw(TEXT + tail)))


def test_a_broken_diff_in_a_reply_leaves_the_thread_readable():
    envelope = b"From x Thu Jan  7 00:00:00 2027\n"
    reply = raw(DIFF.replace("+10,4", "+10,9"), "Re: [PATCH net-next] made_up")
    patch = patchfile.read(envelope + raw() + b"\n" + envelope + reply)
    check(patch)


def test_prose_that_looks_like_a_file_name_line_is_prose():
    patch = patchfile.read(raw("--- some/thing else\nwords\n"))
    assert patch.files == ()


# ---- trailers, links, people --------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "count"),
    [
        ("Signed-off-by: A <a@x.org>\n[b: fixed a typo]\nAcked-by: B <b@x.org>", 2),
        ("(cherry picked from commit 0123456789ab)\nReviewed-by: A <a@x.org>", 1),
        ("T:  Bus=02\nand a sentence\nmore\nwords", 0),
        ("Fixes: 0123456789ab (\"a: b\")\nCc: <s@x.org> # 5\nLink: https://x.org", 3),
        ("Reported-by: A <a@x.org>\n  (long)\nSigned-off-by: A <a@x.org>", 2),
    ],
)  # fmt: skip
def test_trailers_by_the_rule_of_git(last, count):
    body = f"Words: with a colon.\n\n{last}\n---\n{DIFF}"
    assert len(patchfile.read(raw(body)).trailers) == count


def test_links_hold_no_address_and_no_punctuation():
    body = (
        "See https://example.org/a, https://example.org/b. And\n"
        "https://lore.example.org/r/20270107-1-a@example.org too.\n---\n" + DIFF
    )
    assert patchfile.read(raw(body)).links == (
        "https://example.org/a",
        "https://example.org/b",
    )


def test_a_commit_as_git_shows_it():
    text = (
        f"commit {'0123456789' * 4}\nAuthor: A Person <a@example.org>\n"
        "Date:   Thu Jan 7 00:00:00 2027 +0100\n\n    made_up: leave room\n    \n"
        "    größer now.\n    \n    Signed-off-by: A Person <a@example.org>\n\n" + DIFF
    )
    patch = patchfile.read(text.encode())
    assert (patch.subject, patch.subject_from) == ("made_up: leave room", "first line")
    assert patch.sha == "0123456789" * 4
    assert patch.trailers == ("Signed-off-by: A Person <a@example.org>",)
    assert len(patch.files) == 1


# ---- hostile ------------------------------------------------------------------------


def test_a_mail_that_is_nested_deeply_is_refused_or_read():
    parts = "".join(
        f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(3000)
    )
    data = f"From: a@example.org\nSubject: [PATCH] a: b\n{parts}\n{TEXT}".encode()
    with contextlib.suppress(PatchError):
        assert patchfile.read(data).title == "a: b"


def test_many_false_envelopes_take_no_long_time():
    body = b"From x 2027\nwords\n" * 200_000
    assert patchfile.read(body).files == ()


@pytest.mark.parametrize("piece", [b"1", b"1 ", b"x", b"12345 x"])
def test_an_envelope_of_one_long_line_takes_no_long_time(piece):
    body = b"From " + piece * 200_000 + b" Mon\n" + raw()
    assert patchfile.read(body) is not None


def test_a_title_holds_no_control_characters():
    patch = patchfile.read(raw(subject="[PATCH] a: \x1b[31mred\u202e"))
    assert patch.title == "a: \\x1b[31mred\\u202e"
