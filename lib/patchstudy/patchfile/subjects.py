"""Tags of a subject: ``[PATCH net-next v3 02/13]``, in any order and any shape."""

import re
from dataclasses import dataclass, replace
from typing import Final

#: Trees that a subject names beside those that end in ``-next``.
TREES: Final = frozenset(
    {
        "net", "bpf", "wireless", "ipsec", "nf", "can", "mac80211", "wpan", "batadv",
        "iwl-net", "net-queue", "next-queue", "stable", "vhost", "xfrm",
    }
)  # fmt: skip

_TAGS: Final = re.compile(r"\A\s*\[([^\]]*)\]\s*")
_REPLY: Final = re.compile(r"(?i)\A\s*(?:re|aw|fwd?|fw|sv|antw|wg)(?:\[\d+\])?\s*:\s*")
_SERIES: Final = re.compile(r"\A(.*?)(?<!\d)(\d{1,9})(?:/|of)(\d{1,9})\Z")
_VERSION: Final = re.compile(r"\A(?:(?i:patch|rfc))?[vV](\d{1,9})\Z")
_STABLE: Final = re.compile(r"\A(?:linux-)?\d+\.\d+\.y\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a subject says: its tags, and the title behind them."""

    title: str
    reply: bool
    rfc: bool
    tree: str | None
    version: int | None
    number: int | None
    of: int | None


def parse(text: str) -> Subject:
    """Read the tags of all brackets, with ``Re:`` before or between them."""
    rest, words, reply = text, list[str](), False
    while found := _REPLY.match(rest) or _TAGS.match(rest):
        if found.re is _REPLY:
            reply = True
        else:
            words += re.split(
                r"[\s,;]+", re.sub(r"(\d)\s+of\s+(\d)", r"\1/\2", found[1])
            )
        rest = rest[found.end() :]
    plain = Subject(
        title=rest.strip(), reply=reply, rfc=False, tree=None, version=None,
        number=None, of=None,
    )  # fmt: skip
    for word in words:
        plain = _with(plain, word)
    return plain


def prefix(title: str) -> str | None:
    """Return the first word of the title before a colon: ``"bgmac"``."""
    before, colon, _ = title.partition(":")
    return before.strip() if colon and " " not in before.strip() else None


def _with(subject: Subject, word: str) -> Subject:
    """Add what one tag says; ``net-next1/2`` lacks a blank, ``PATCHv2`` too."""
    rfc = subject.rfc or word.upper().startswith("RFC")
    subject = replace(subject, rfc=rfc)
    if found := _SERIES.match(word):
        subject = replace(subject, number=int(found[2]), of=int(found[3]))
        word = found[1]
    if found := _VERSION.match(word):
        return replace(subject, version=int(found[1]))
    return replace(subject, tree=word.lower()) if _is_tree(word.lower()) else subject


def _is_tree(word: str) -> bool:
    branch = word.endswith("-next") and len(word) > len("-next")
    return branch or word in TREES or _STABLE.match(word) is not None
