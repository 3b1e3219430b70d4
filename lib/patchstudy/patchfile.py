"""A patch as people have it: subject, version, series, files, driver and links.

Raw mails, mbox threads, ``git format-patch`` and patchwork files, pasted mails, bare
and quilt diffs, cover letters and replies are read. What a shape does not tell is None
or empty, never guessed. The rules for subjects and trailers are those of the kernel's
process/submitting-patches.rst and of ``git interpret-trailers``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import PurePosixPath
from typing import Final

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from patchstudy.errors import PatchstudyError, printable

#: Trees that a subject names beside those that end in ``-next``.
TREES: Final = frozenset({"net", "bpf", "wireless", "ipsec", "nf", "can", "mac80211"})
#: Largest patch that is read.
MAX_BYTES: Final = 16 * 2**20

_ENVELOPE: Final = re.compile(rb"^From (\S+)[^\n]*\d{4}[^\n]*\n", re.MULTILINE)
_HEADER: Final = re.compile(rb"(?i)\A(?:[\w-]+:[^\n]*\n(?:[ \t][^\n]*\n)*)+\r?\n")
_TAGS: Final = re.compile(r"\A\s*\[([^\]]*)\]\s*")
_REPLY: Final = re.compile(r"(?i)\A\s*(?:re|aw|fwd?)\s*:\s*")
_SERIES: Final = re.compile(r"\A(.*?)(\d+)/(\d+)\Z")
_VERSION: Final = re.compile(r"\A[vV](\d+)\Z")
_DIFF: Final = re.compile(r"(?m)^(?:diff --git |Index: |--- (?:a/|/dev/null)|--- \S+/)")
_TRAILER: Final = re.compile(r"\A[A-Za-z][\w-]*: \S")
_LINK: Final = re.compile(r"https?://[^\s<>\"')\]]+")
_BASE: Final = re.compile(r"(?m)^base-commit: ([0-9a-f]{12,40})")
_CHANGE: Final = re.compile(r"(?m)^change-id: (\S+)")
_SHA: Final = re.compile(r"\A[0-9a-f]{40}\Z")
_STEM: Final = re.compile(r"(?:_main|_core|-).*\Z")


class PatchError(PatchstudyError):
    """A patch file cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchedFile:
    """One file of the diff, with the lines that it gains and loses."""

    path: str
    added: int
    removed: int
    new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """What a patch file says of itself.

    Attributes
    ----------
    subject, title
        As mailed, and without the tags in brackets; None for a bare diff.
    subject_from
        ``"header"``, ``"first line"`` of a pasted mail, or None.
    tree, version, number, of
        ``net-next``, 3, 2 and 13 of ``[PATCH net-next v3 02/13]``.
    prefix
        First word of the title before a colon: ``"bgmac"``.
    driver, subsystem
        By the path of the first file under ``drivers/net`` or ``net``.
    trailers
        Of the last paragraph of the message. They name people: never print them.
    """

    subject: str | None
    subject_from: str | None
    title: str | None
    prefix: str | None
    reply: bool
    rfc: bool
    tree: str | None
    version: int | None
    number: int | None
    of: int | None
    files: tuple[PatchedFile, ...]
    driver: str | None
    subsystem: str | None
    trailers: tuple[str, ...]
    links: tuple[str, ...]
    base_commit: str | None
    change_id: str | None
    message_id: str | None
    sha: str | None
    text: str


def read(data: bytes) -> Patch:
    """Read a patch file; of a thread, the first message that is a patch.

    Raises
    ------
    PatchError
        If the file is empty, too large, or its diff is broken.
    """
    if not data.strip():
        raise PatchError("an empty patch file; save the mail again")
    if len(data) > MAX_BYTES:
        raise PatchError(f"a patch file larger than {MAX_BYTES // 2**20} MiB")
    messages = [_message(part, sha) for sha, part in _messages(data)]
    chosen = next((one for one in messages if one.files and not one.reply), None)
    named = next((one for one in messages if one.subject and not one.reply), None)
    return chosen or named or messages[0]


def place(paths: list[str]) -> tuple[str | None, str | None]:
    """Return driver and subsystem by the path of the first file that tells them.

    ``drivers/net/ethernet/<vendor>/<driver>/`` names the folder, a file right below the
    vendor its stem; ``drivers/net/usb/<driver>.c`` the stem; ``drivers/net/wireless``
    the last folder. Files outside ``drivers/net`` have no driver.
    """
    for path in paths:
        parts = PurePosixPath(path).parts
        if parts[:2] == ("drivers", "net") and len(parts) > 3:
            return _driver(parts[2:]), parts[2]
    core = next(
        (PurePosixPath(one).parts for one in paths if one.startswith("net/")), ()
    )
    return None, "/".join(core[:2]) if core else None


def _driver(parts: tuple[str, ...]) -> str:
    """Name the driver of a path below ``drivers/net``."""
    stem = _STEM.sub("", PurePosixPath(parts[-1]).stem)
    folders = parts[1:-1]
    if parts[0] == "ethernet":
        return folders[1] if len(folders) > 1 else stem
    if parts[0] == "wireless":
        return folders[-1] if len(folders) > 1 else stem
    return folders[-1] if folders else stem


def _messages(data: bytes) -> Iterator[tuple[str | None, bytes]]:
    """Split a mailbox; anything else is one message. The sha is format-patch's."""
    marks = [
        one for one in _ENVELOPE.finditer(data) if _HEADER.match(data[one.end() :])
    ]
    if not marks:
        yield None, data
        return
    ends = [one.start() for one in marks[1:]] + [len(data)]
    for mark, end in zip(marks, ends, strict=True):
        sender = mark[1].decode("ascii", errors="replace")
        yield sender if _SHA.match(sender) else None, data[mark.end() : end]


def _message(data: bytes, sha: str | None) -> Patch:
    mail, body = _parsed(data)
    subject, origin = _subject(mail, body)
    tags, title = _split(subject or "")
    tree, version, number, of = _series(tags)
    head, diff = _cut(body)
    files = tuple(_files(diff))
    driver, subsystem = place([one.path for one in files])
    message_id = (
        str(mail["Message-ID"]).strip(" <>") if mail and mail["Message-ID"] else ""
    )
    return Patch(
        subject=subject,
        subject_from=origin,
        title=title or None,
        prefix=_prefix(title),
        reply=bool(_REPLY.match(subject or "")),
        rfc="RFC" in tags,
        files=files,
        driver=driver,
        subsystem=subsystem,
        trailers=tuple(_trailers(head)),
        links=tuple(dict.fromkeys(_LINK.findall(head))),
        base_commit=_first(_BASE, body),
        change_id=_first(_CHANGE, body),
        message_id=message_id or None,
        sha=sha,
        text=body,
        tree=tree,
        version=version or (1 if subject else None),
        number=number,
        of=of,
    )


def _parsed(data: bytes) -> tuple[EmailMessage | None, str]:
    """Header and text of a mail; a file without header is all text."""
    if not _HEADER.match(data):
        return None, data.decode("utf-8", errors="replace")
    mail = message_from_bytes(data, policy=policy.default)
    body = mail.get_body(preferencelist=("plain",))
    if body is None:
        return mail, ""
    try:
        return mail, str(body.get_content())
    except (LookupError, KeyError):  # a charset or a type that Python does not know
        raw = body.get_payload(decode=True)
        return mail, raw.decode("utf-8", errors="replace") if isinstance(
            raw, bytes
        ) else ""


def _subject(mail: EmailMessage | None, body: str) -> tuple[str | None, str | None]:
    if mail is not None and mail["Subject"]:
        return " ".join(str(mail["Subject"]).split()), "header"
    first = body.lstrip().partition("\n")[0].strip()
    if _TAGS.match(first):
        return printable(first), "first line"
    return None, None


def _split(subject: str) -> tuple[list[str], str]:
    """Tags of all brackets in any order, and the title behind them."""
    rest = subject
    while found := _REPLY.match(rest):
        rest = rest[found.end() :]
    tags: list[str] = []
    while found := _TAGS.match(rest):
        rest = rest[found.end() :]
        tags += [word for word in re.split(r"[\s,]+", found[1]) if word]
    return tags, rest


def _series(
    tags: list[str],
) -> tuple[str | None, int | None, int | None, int | None]:
    """Tree, version, number and how many; ``net-next1/2`` lacks a blank."""
    tree, version, number, of = None, None, None, None
    for tag in tags:
        word = tag
        if found := _SERIES.match(word):
            word, number, of = found[1], int(found[2]), int(found[3])
        if found := _VERSION.match(word):
            version = int(found[1])
        elif word in TREES or (word.endswith("-next") and len(word) > len("-next")):
            tree = word
    return tree, version, number, of


def _prefix(title: str) -> str | None:
    before, colon, _ = title.partition(":")
    return before.strip() if colon and " " not in before.strip() else None


def _cut(body: str) -> tuple[str, str]:
    """Message and diff; the message ends at ``---`` or where the diff begins."""
    found = _DIFF.search(body)
    at = found.start() if found else len(body)
    head = re.split(r"(?m)^---\s*$", body[:at], maxsplit=1)[0]
    return head, body[at:]


def _files(diff: str) -> Iterator[PatchedFile]:
    if not diff:
        return
    try:
        found = PatchSet(diff)
    except (UnidiffParseError, ValueError) as error:
        raise PatchError(f"the diff is broken ({printable(str(error))})") from error
    for one in found:
        yield PatchedFile(
            path=one.path, added=one.added, removed=one.removed, new=one.is_added_file
        )


def _trailers(message: str) -> Iterator[str]:
    """Trailers of the last paragraph, if it holds nothing else."""
    paragraphs = re.split(r"\n[ \t]*\n", message.strip())
    lines = [line for line in paragraphs[-1].splitlines() if line.strip()]
    folded: list[str] = []
    for line in lines:
        if line[0].isspace() and folded:
            folded[-1] += f" {line.strip()}"
        else:
            folded.append(line.strip())
    if len(paragraphs) > 1 and all(_TRAILER.match(line) for line in folded):
        yield from folded


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1] if found else None
