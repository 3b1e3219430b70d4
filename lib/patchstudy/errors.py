"""Errors a user can act on: each says where, what is wrong, and what to do."""

from pathlib import Path
from typing import Final


class PatchstudyError(Exception):
    """Base of every error this package raises on purpose; its text is one line."""


#: Longest text of one problem: a file may hold a word of a million letters.
_LONGEST: Final = 2000


class CaptureError(PatchstudyError):
    """A raw file cannot be read as the output of the tool that it looks like.

    Parameters
    ----------
    path
        The raw file, as the user named it.
    problem
        What is wrong and what to do, in one line.
    where
        Line number or JSON path inside the file, where known.
    """

    def __init__(self, path: Path, problem: str, *, where: str | None = None) -> None:
        self.path = path
        if len(problem) > _LONGEST:
            problem = f"{problem[:_LONGEST]} ..."
        self.problem = problem
        self.where = where
        place = printable(f"{path}:{where}" if where else str(path))
        super().__init__(f"{place}: {printable(problem)}")


class UnknownToolError(CaptureError):
    """No loader recognises a raw file; it is listed, not used."""


class StudyError(PatchstudyError):
    """A study folder or its ``study.toml`` cannot be used; one line a mistake."""


class NoRunsError(StudyError):
    """A study holds no raw file yet: it is planned, not measured."""


class GrainError(PatchstudyError):
    """A table of another grain than the experimental unit was given to ``compare``."""


def printable(text: str) -> str:
    """Return the text as one line without control or formatting characters.

    Names and strings from raw files may hold escape codes, line breaks or marks that
    turn the writing direction; in an error they are shown as escapes, never sent to
    the terminal.
    """
    if text.isprintable():
        return str(text)
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode("ascii")
        for one in text
    )
