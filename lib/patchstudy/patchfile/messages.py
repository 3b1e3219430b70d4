"""From the bytes of a file to its messages: mailbox, headers, text.

Formats: RFC 4155 mailboxes (with the quoting of ``From`` lines of mboxrd), RFC 5322
headers, RFC 2045 bodies, ``format=flowed`` of RFC 3676, and scissors lines and headers
inside a body as ``git mailinfo`` reads them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage, MIMEPart
from typing import Final

from bs4 import BeautifulSoup

from patchstudy.errors import PatchstudyError, printable

#: Most parts of a mail that are looked at.
_MOST_PARTS: Final = 100

_ENVELOPE: Final = re.compile(rb"^From (?=[^\n]*\d{4})(\S++)[^\n]*+\n", re.MULTILINE)
_HEADER: Final = re.compile(rb"(?i)(?:[\w-]+:[^\n]*\n(?:[ \t][^\n]*\n)*)+\n")
_MAILED: Final = re.compile(rb"(?im)^(?:from|subject|date|message-id):")
_QUOTED_FROM: Final = re.compile(r"(?m)^>(>*From )")
_SHA: Final = re.compile(r"\A[0-9a-f]{40}\Z")
#: Headers that git takes from the top of a body.
_IN_BODY: Final = re.compile(
    r"(?i)\A\n*(?:(?:from|date|subject):[^\n]*\n(?:[ \t][^\n]*\n)*)+\n"
)
_SCISSORS: Final = re.compile(
    r"(?m)^(?=[^\n]*(?:>8|8<|>%|%<))(?=[^\n]*-)[- \t<>8%]+(?:cut here[- \t<>8%]*)?\n"
)
_COMMIT: Final = re.compile(
    r"\Acommit ([0-9a-f]{12,40})[^\n]*\n(?:[A-Z][\w-]*:[^\n]*\n)+\n"
)
_DIFF_START: Final = re.compile(r"(?m)^(?:diff --git |--- \S)")


class PatchError(PatchstudyError):
    """A patch file cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a file.

    Attributes
    ----------
    subject
        As mailed, on one line; None where there is none.
    subject_from
        ``"header"``, ``"body"`` (a header inside the body, as git allows), ``"first
        line"`` of a pasted mail or of a commit that git shows, or None.
    message_id, sha
        Without angle brackets; and the commit that ``git format-patch`` names.
    body
        All text, decoded, with plain line ends.
    """

    subject: str | None
    subject_from: str | None
    message_id: str | None
    sha: str | None
    body: str


def messages(data: bytes) -> Iterator[Message]:
    """Yield the messages of a mailbox; anything else is one message.

    Raises
    ------
    PatchError
        If a mail is nested too deeply.
    """
    plain = data.replace(b"\r\n", b"\n").removeprefix(b"\xef\xbb\xbf").lstrip(b"\n")
    for sender, part in _split(plain):
        sha = sender if sender and _SHA.match(sender) else None
        yield _message(part, sha, boxed=sender is not None)


def _split(data: bytes) -> Iterator[tuple[str | None, bytes]]:
    marks = [one for one in _ENVELOPE.finditer(data) if _begins(data, one)]
    if not marks:
        yield None, data
        return
    ends = [one.start() for one in marks[1:]] + [len(data)]
    for mark, end in zip(marks, ends, strict=True):
        yield mark[1].decode("ascii", errors="replace"), data[mark.end() : end]


def _begins(data: bytes, mark: re.Match[bytes]) -> bool:
    """Say whether a message begins: a blank line before it, and headers of a mail."""
    at = mark.start()
    if at and data[max(0, at - 2) : at] != b"\n\n":
        return False
    header = _HEADER.match(data, mark.end())
    return header is not None and _MAILED.search(header[0]) is not None


def _message(data: bytes, sha: str | None, *, boxed: bool) -> Message:
    if not _HEADER.match(data):
        return _pasted(_decoded(data))
    mail, body = _mail(data)
    subject = _header(mail, "Subject")
    body = _QUOTED_FROM.sub(r"\1", body) if boxed else body
    inner, body = _inner(body)
    told = subject or inner
    first = _first_line(body) if told is None else None
    origin = "body" if inner else "header" if subject else first and "first line"
    return Message(
        subject=inner or subject or first,
        subject_from=origin or None,
        message_id=(_header(mail, "Message-ID") or "").strip(" <>") or None,
        sha=sha,
        body=body,
    )


def _pasted(text: str) -> Message:
    """Read a pasted mail, a bare diff, or a commit as ``git show`` prints it."""
    shown = _COMMIT.match(text)
    if shown:
        head, diff = _before_diff(text[shown.end() :])
        lines = [line.removeprefix("    ") for line in head.splitlines()]
        text = "\n".join([*lines, diff])
    first = text.lstrip().partition("\n")[0].strip() if shown else _first_line(text)
    return Message(
        subject=printable(first) if first else None,
        subject_from="first line" if first else None,
        message_id=None,
        sha=shown[1] if shown and len(shown[1]) == 40 else None,
        body=text,
    )


def _before_diff(text: str) -> tuple[str, str]:
    found = _DIFF_START.search(text)
    at = found.start() if found else len(text)
    return text[:at], text[at:]


def _first_line(body: str) -> str | None:
    """Return the first line where it has tags in brackets, as a subject has."""
    first = body.lstrip().partition("\n")[0].strip()
    return printable(first) if re.match(r"\[[^\]]+\]\s*\S", first) else None


def _header(mail: EmailMessage, name: str) -> str | None:
    """Return a header as one line; undecodable bytes are replaced."""
    try:
        value = str(mail[name] or "")
    except (LookupError, ValueError, IndexError):  # broken encoded words
        value = str(dict(mail.raw_items()).get(name, ""))
    plain = value.encode("utf-8", errors="replace").decode("utf-8")
    return printable(" ".join(plain.split())) or None


def _inner(body: str) -> tuple[str | None, str]:
    """Cut above scissors, and take the subject of headers at the top of the body."""
    head, _ = _before_diff(body)
    cuts = [one.end() for one in _SCISSORS.finditer(head)]
    rest = body[cuts[-1] :] if cuts else body
    found = _IN_BODY.match(rest)
    if found is None:
        return None, rest
    named = re.search(r"(?im)^subject:([^\n]*(?:\n[ \t][^\n]*)*)", found[0])
    subject = printable(" ".join(named[1].split())) if named else ""
    return subject or None, rest[found.end() :]


# ---- text of a mail -----------------------------------------------------------------


def _mail(data: bytes) -> tuple[EmailMessage, str]:
    try:
        mail = message_from_bytes(data, policy=policy.default)
        texts = list(_texts(mail))
    except RecursionError:
        raise PatchError("a mail that is nested too deeply") from None
    return mail, "\n".join(texts)


def _texts(mail: EmailMessage) -> Iterator[str]:
    """Yield the text, then what is attached as text: there the patch may be.

    HTML is read where a mail has no plain text beside it.
    """
    body = mail.get_body(preferencelist=("plain", "html"))
    if body is not None:
        yield _text(body)
    for number, part in enumerate(mail.walk()):
        if number > _MOST_PARTS:
            return
        attached = part is not body and not part.is_multipart()
        if attached and isinstance(part, MIMEPart) and _is_patch(part):
            yield _text(part)


def _is_patch(part: MIMEPart) -> bool:
    """Say whether a part is attached as a patch or as plain text."""
    name = (_filename(part) or "").lower()
    if part.get_content_type() in {"text/x-patch", "text/x-diff"}:
        return True
    if name.endswith((".patch", ".diff", ".eml", ".mbox")):
        return True
    return part.get_content_type() == "text/plain" and part.is_attachment()


def _filename(part: MIMEPart) -> str | None:
    try:
        return part.get_filename()
    except (LookupError, ValueError, IndexError):
        return None


def _text(part: MIMEPart) -> str:
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    charset = str(part.get_content_charset("utf-8"))
    try:
        text = data.decode(charset, errors="replace")
    except (LookupError, ValueError):  # a charset that Python does not know
        text = _decoded(data)
    text = text.replace("\r\n", "\n")
    if part.get_content_type() == "text/html":
        return BeautifulSoup(text, "html.parser").get_text()
    if str(part.get_param("format", "")).lower() == "flowed":
        return _unflowed(text, joined=str(part.get_param("delsp", "")).lower() == "yes")
    return text


def _unflowed(text: str, *, joined: bool) -> str:
    """Undo ``format=flowed``: take off stuffed blanks and join soft-broken lines.

    Lines of a diff are never joined: there a blank at the end is part of the line.
    """
    head, diff = _before_diff(text)
    lines: list[str] = []
    soft = False
    for line in head.split("\n"):
        plain = line.removeprefix(" ")
        if soft:
            lines[-1] += plain
        else:
            lines.append(plain)
        soft = plain.endswith(" ") and plain != "-- "
        if soft and joined:
            lines[-1] = lines[-1][:-1]
    stuffed = [line[1:] if line.startswith("  ") else line for line in diff.split("\n")]
    return "\n".join(lines) + "\n".join(stuffed)


def _decoded(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace").replace("\r\n", "\n")
    return data.decode("utf-8", errors="replace")
