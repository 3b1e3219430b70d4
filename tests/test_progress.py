"""How far a batch is: a bar on a terminal, lines elsewhere."""

import os
import sys

import pytest

from patchstudy.report.batch import Outcome
from patchstudy.report.progress import Progress

pty = pytest.importorskip("pty", reason="this system has no terminals of this kind")


def outcome(study, error=""):
    return Outcome(study=study, decision="accept", error=error, unread=())


def tell_two(quiet=False):
    with Progress(2, quiet=quiet) as tell:
        tell(outcome("veth/one"))
        tell(outcome("veth/\x1b[31mtwo", error="torn"))


def shown_on(terminal):
    """Return all that was written to the other side of a terminal, now closed."""
    told = b""
    try:
        while part := os.read(terminal, 65536):
            told += part
    except OSError:  # Linux: the other side is closed
        pass
    os.close(terminal)
    return told.decode()


def test_a_terminal_without_a_size_shows_the_bar(monkeypatch):
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        tell_two()
    shown = shown_on(ours)
    last = shown.rstrip().rpartition("\r")[2]
    assert last.startswith("100%|")
    assert "1 made, 0 kept, 1 failed" in last
    assert "\x1b[31m" not in shown


def test_elsewhere_every_study_is_a_line(capsys):
    tell_two()
    assert capsys.readouterr().err == ("veth/one: accept\nveth/\\x1b[31mtwo: failed\n")


def test_nothing_is_shown_when_asked_for(capsys):
    tell_two(quiet=True)
    assert capsys.readouterr().err == ""
