"""A patch as people have it: subject, version, series, files, driver and links.

Raw mails, mbox threads, ``git format-patch``, ``git show`` and patchwork files, pasted
mails, bare and quilt diffs, cover letters and replies are read. What a shape does not
tell is None or empty, never guessed. The rules for subjects and trailers are those of
the kernel's process/submitting-patches.rst and of ``git interpret-trailers``.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchedFile as _Diffed
from unidiff.patch import PatchSet

from patchstudy.errors import printable
from patchstudy.patchfile import subjects
from patchstudy.patchfile.messages import Message, PatchError, messages
from patchstudy.patchfile.paths import in_tree, place
from patchstudy.patchfile.subjects import TREES

#: Largest patch that is read.
MAX_BYTES: Final = 16 * 2**20
#: A paragraph with a sign-off is one of trailers if so many of its lines are.
_ENOUGH_TRAILERS: Final = 0.25

_DIFF: Final = re.compile(
    r"(?m)^(?:diff --git |Index: \S|--- \S[^\n]*\n\+\+\+ |diff -\S+ )"
)
_TRAILER: Final = re.compile(r"\A[A-Za-z][\w-]*:\s+\S")
_SIGNED: Final = re.compile(r"\A(?:Signed-off-by: |\(cherry picked from commit )")
_SIGNATURE: Final = re.compile(r"(?m)^-- ?$")
_LINK: Final = re.compile(r"https?://[^\s<>\"')\]]+")
_BASE: Final = re.compile(r"(?m)^base-commit: ([0-9a-f]{12,40})")
_CHANGE: Final = re.compile(r"(?m)^change-id: (\S+)")
_OCTAL: Final = re.compile(rb"\\([0-7]{3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchedFile:
    """One file of the diff, with the lines that it gains and loses.

    ``old`` is its path before the patch where it was renamed or copied, else None.
    """

    path: str
    added: int
    removed: int
    new: bool
    deleted: bool
    binary: bool
    old: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """What a patch file says of itself.

    Attributes
    ----------
    subject, title
        As mailed, and without the tags in brackets; None for a bare diff.
    subject_from
        ``"header"``, ``"body"``, ``"first line"`` of a pasted mail, or None.
    tree, version, number, of
        ``net-next``, 3, 2 and 13 of ``[PATCH net-next v3 02/13]``.
    prefix
        First word of the title before a colon: ``"bgmac"``.
    driver, subsystem
        By the path of the first file under ``drivers/net`` or ``net``.
    trailers
        Of the last paragraph of the message. They name people: never print them.
    links
        Those of the message that hold no address of a person.
    message_id
        May hold the address of a person: never print it.
    text
        All of the message, diff and people included.
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
    return chosen(read_all(data))


def chosen(found: Sequence[Patch]) -> Patch:
    """Return the first message that is a patch, else the first that is no reply."""
    whole = next((one for one in found if one.files and not one.reply), None)
    named = next((one for one in found if one.subject and not one.reply), None)
    return whole or named or found[0]


def read_all(data: bytes) -> tuple[Patch, ...]:
    """Read every message of a patch file, in its order: cover, patches, replies.

    Raises
    ------
    PatchError
        If the file is empty, too large, or the diff of a patch is broken; a broken
        diff in a reply is no diff.
    """
    if not data.strip():
        raise PatchError("an empty patch file; save the mail again")
    if len(data) > MAX_BYTES:
        raise PatchError(f"a patch file larger than {MAX_BYTES // 2**20} MiB")
    return tuple(map(_patch, messages(data)))


def message_of(patch: Patch) -> str:
    """Return the message alone, without diff, diffstat and signature."""
    return _cut(patch.text)[0]


def _patch(message: Message) -> Patch:
    told = subjects.parse(message.subject or "")
    head, diff = _cut(message.body)
    files = tuple(_files(diff, broken=told.reply))
    driver, subsystem = place([one.path for one in files])
    return Patch(
        subject=message.subject,
        subject_from=message.subject_from,
        title=told.title or None,
        prefix=subjects.prefix(told.title),
        reply=told.reply,
        rfc=told.rfc,
        tree=told.tree,
        version=told.version or (1 if message.subject else None),
        number=told.number,
        of=told.of,
        files=files,
        driver=driver,
        subsystem=subsystem,
        trailers=tuple(_trailers(head)),
        links=tuple(_links(head)),
        base_commit=_first(_BASE, message.body),
        change_id=_first(_CHANGE, message.body),
        message_id=message.message_id,
        sha=message.sha,
        text=message.body,
    )


def _cut(body: str) -> tuple[str, str]:
    """Message and diff; the message ends at ``---`` or where the diff begins."""
    found = _DIFF.search(body)
    at = found.start() if found else len(body)
    head = re.split(r"(?m)^---\s*$", body[:at], maxsplit=1)[0]
    return _SIGNATURE.split(head, maxsplit=1)[0], body[at:]


def _files(diff: str, *, broken: bool) -> Iterator[PatchedFile]:
    """Yield the files of a diff; with ``broken`` none of one that cannot be read."""
    if not diff:
        return
    try:
        found = PatchSet(diff)
    except (UnidiffParseError, ValueError) as error:
        if broken:
            return
        raise PatchError(f"the diff is broken ({printable(str(error))})") from error
    for one in found:
        if path := _path(one.path):
            yield PatchedFile(
                path=path,
                added=one.added,
                removed=one.removed,
                new=one.is_added_file,
                deleted=one.is_removed_file,
                binary=bool(one.is_binary_file),
                old=_old(one, path),
            )


def _old(one: _Diffed, path: str) -> str | None:
    if not one.is_rename or one.source_file == "/dev/null":
        return None
    old = _path(one.source_file.removeprefix("a/"))
    return old if old != path else None


def _path(name: str) -> str:
    """Return a path from the top of the tree; git quotes odd ones as C strings does."""
    plain = name.strip()
    if plain.startswith('"') and plain.endswith('"'):
        inner = plain[1:-1].encode("utf-8", errors="surrogateescape")
        octal = _OCTAL.sub(lambda x: bytes([int(x[1], 8) & 0xFF]), inner)
        plain = octal.decode("utf-8", errors="replace").removeprefix("b/")
        plain = plain.removeprefix("a/").replace('\\"', '"').replace("\\\\", "\\")
    return printable(in_tree(plain))


def _trailers(message: str) -> Iterator[str]:
    """Trailers of the last paragraph, by the rule of ``git interpret-trailers``.

    It holds nothing else; or one of them is a sign-off and a quarter of its lines are
    trailers, so that notes in brackets between them do not hide them.
    """
    paragraphs = re.split(r"\n[ \t]*\n", message.strip())
    folded: list[str] = []
    for line in paragraphs[-1].splitlines():
        if line[:1].isspace() and folded:
            folded[-1] += f" {line.strip()}"
        elif line.strip():
            folded.append(line.strip())
    found = [line for line in folded if _TRAILER.match(line)]
    signed = any(map(_SIGNED.match, folded))
    enough = signed and len(found) >= _ENOUGH_TRAILERS * len(folded)
    if len(paragraphs) > 1 and (len(found) == len(folded) or enough):
        yield from found


def _links(message: str) -> Iterator[str]:
    """Yield each link once, without those that hold an address."""
    for link in dict.fromkeys(one.rstrip(".,;:") for one in _LINK.findall(message)):
        if "@" not in link and "%40" not in link:
            yield link


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1] if found else None


__all__ = [
    "MAX_BYTES",
    "TREES",
    "Patch",
    "PatchError",
    "PatchedFile",
    "chosen",
    "message_of",
    "place",
    "read",
    "read_all",
]
