"""A new study folder: ``study.toml`` filled from a patch mail, to be gone through.

Nothing is invented. A before/after statement that is recognised becomes a claim that a
person confirms; every other line of the mail with a number stands as a comment.
"""

import json
import os
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from patchstudy import claims, loaders, mails, patchfile
from patchstudy.errors import CaptureError, StudyError, printable
from patchstudy.mails import Said, Told
from patchstudy.metrics import Kind, metric
from patchstudy.patchfile import Patch, PatchError
from patchstudy.patchfile.kernel_tree import InTree, in_tree
from patchstudy.report import files
from patchstudy.study import Design, read_design
from patchstudy.study.design import DEFAULT_MARGINS, LAYOUT

_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
_WIDTH: Final = 86
_LISTED: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A study folder that was written.

    Attributes
    ----------
    folder
        Where.
    claims, rest
        How many statements are to be confirmed, and how many lines with a number were
        not recognised.
    """

    folder: Path
    claims: int
    rest: int


def start(
    data: Path, name: str, *, patch_file: Path | None, kernel: Path | None
) -> Started:
    """Write ``DATA/DRIVER/PATCH/study.toml``, and the patch file beside it.

    Raises
    ------
    StudyError
        If the name is not ``driver/patch`` in plain characters, the folder is there
        already, or the patch file or the kernel tree cannot be used.
    """
    folder = data.joinpath(*_parts(name))
    if not _is_free(folder):
        raise StudyError(f"{folder}: is there already; name another, or edit it")
    raw, patches = _patches(patch_file)
    told = mails.told(patches)
    patch = patchfile.chosen(patches) if patches else None
    placed = _placed(kernel, patch)
    text = "\n".join([*_toml(name, patch, told, placed), ""])
    written = {"study.toml": text.encode("utf-8")} | raw
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files.write_all(folder, written)
    except OSError as error:
        place = printable(str(error.filename or folder))
        raise StudyError(f"{place}: cannot be written ({error.strerror})") from error
    read_design(folder)
    return Started(folder=folder, claims=len(told.said), rest=len(told.rest))


def _is_free(folder: Path) -> bool:
    """Say whether a folder is not there, or holds no more than a stopped ``new`` left.

    One that was stopped when the study was all but there is finished first.
    """
    if not folder.is_dir() or folder.is_symlink():
        return not os.path.lexists(folder)
    try:
        files.settle(folder)
        left = [one.name for one in folder.iterdir()]
    except OSError:
        return False
    return all(one.startswith(".") and one.endswith(".new") for one in left)


def _parts(name: str) -> tuple[str, str]:
    driver, slash, patch = name.partition("/")
    if not (slash and _PART.fullmatch(driver) and _PART.fullmatch(patch)):
        raise StudyError(
            f"{printable(name)!r} is no name of a study; give driver/patch in letters, "
            "digits, and . _ + - inside, as qmi_wwan/qmap-headroom"
        )
    return driver, patch


def _patches(path: Path | None) -> tuple[dict[str, bytes], tuple[Patch, ...]]:
    if path is None:
        return {}, ()
    try:
        raw = loaders.read(path)
        return {"patch.mbox": raw.data}, patchfile.read_all(raw.data)
    except CaptureError as error:
        raise StudyError(str(error)) from error
    except PatchError as error:
        raise StudyError(f"{path}: {error}") from error


def _placed(kernel: Path | None, patch: Patch | None) -> InTree | None:
    if kernel is None or patch is None:
        return None
    return in_tree(kernel, [one.path for one in patch.files])


# ---- study.toml ---------------------------------------------------------------------


def _toml(
    name: str, patch: Patch | None, told: Told, placed: InTree | None
) -> Iterator[str]:
    title = (patch.title if patch else None) or ""
    yield from _comment("The design of a study: go through it before you measure.")
    yield from _comment("Every key is explained in docs/study.md.")
    yield ""
    yield f"title = {_quoted(title)}" if title else '# title = "what people call it"'
    yield f"question = {_quoted(_question(name, title))}"
    yield '# setting = "how and on what it is measured, in words"'
    yield from _about_patch(patch, placed)
    yield from _DESIGN
    yield from _metrics(told)
    yield from _ENDING
    for number, one in enumerate(told.said, start=1):
        yield from _claim(number, one)
    if told.rest:
        yield ""
        yield from _comment("Lines of the mail with numbers that were not recognised:")
        for line in told.rest:
            yield from _comment(line.strip(), indent="  ")


def _question(name: str, title: str) -> str:
    return f"What does {title or name} change?"


def _about_patch(patch: Patch | None, placed: InTree | None) -> Iterator[str]:
    if patch is None:
        return
    yield ""
    where = [patch.driver and f"driver {patch.driver}"]
    where += [patch.subsystem and f"subsystem {patch.subsystem}"]
    if patch.tree:
        where.append(f"tree {patch.tree}")
    known = ", ".join(one for one in where if one)
    yield from _comment(f"Patch: {known or 'no driver named'} (see patch.mbox).")
    for file in patch.files[:_LISTED]:
        yield from _comment(f"  {file.path} +{file.added} -{file.removed}")
    if len(patch.files) > _LISTED:
        yield from _comment(f"  and {len(patch.files) - _LISTED} files more")
    for link in patch.links:
        yield f"# {printable(link)}"
    yield from _about_tree(placed)


def _about_tree(placed: InTree | None) -> Iterator[str]:
    if placed is None:
        return
    for module in placed.modules:
        prompt = f", {module.prompt!r}" if module.prompt else ""
        yield from _comment(f"Module {module.name}: {module.config}{prompt}.")
    for section in placed.sections:
        lists = f" ({', '.join(section.lists)})" if section.lists else ""
        yield from _comment(f"MAINTAINERS: {section.name}{lists}")


_DESIGN: Final = (
    "",
    "# The variants, as their folders are called; the first of patched is judged.",
    'baseline = "baseline"',
    'patched = ["patched"]',
    "# What took turns (run, boot or build), and within what: let the variants take",
    "# turns within each boot (ABBA), or what drifts looks like the patch.",
    'unit = "run"',
    '# block = "boot"',
    "# Where the raw files lie (this is the default):",
    f"# layout = {json.dumps(LAYOUT)}",
    '# not_measured = ["IPv6"]',
)
_ENDING: Final = (
    "",
    "# What must not get worse; without a guard nobody can accept the patch with",
    "# confidence. Others: loss, rtt_p99, cpu_busy, drops.",
    "# [[metrics]]",
    '# name = "loss"',
    '# role = "guard"',
    '# margin = "0.1 pp"        # the largest harm that is accepted',
    "",
    "# Where the patch must change nothing:",
    "# [controls]",
    '# workload = ["tcp-other"]',
    "",
    "# [devices.NAME]",
    '# soc = "what it is"',
    '# link = "1 Gbit/s"         # nothing can exceed it',
)


def _metrics(told: Told) -> Iterator[str]:
    """Declare what the claims speak of; the first answers the question."""
    names = list(dict.fromkeys(one.metric for one in told.said)) or ["throughput"]
    names.sort(key=lambda name: metric(name).kind is Kind.COUNT)
    for number, name in enumerate(names):
        margin = DEFAULT_MARGINS[metric(name).kind]
        yield from ("", "[[metrics]]", f"name = {_quoted(name)}")
        yield f'role = "{"diagnostic" if number else "primary"}"'
        yield f"margin = {_quoted(margin)}  # the smallest change that matters to you"


def _claim(number: int, one: Said) -> Iterator[str]:
    yield ""
    yield from _comment(f"Confirm claim {number}: is this what the mail says?")
    for line in one.quote or ("(of the same output)",):
        yield from _comment(line.strip(), indent="  ")
    for note in one.notes:
        yield from _comment(f"Look: {note}")
    yield "[[claims]]"
    yield f"text = {_quoted(_text(one))}"
    yield f"metric = {_quoted(one.metric)}"
    yield f"change = {_quoted(one.change)}"
    for key, value in (("baseline", one.baseline), ("patched", one.patched)):
        if value:
            yield f"{key} = {_quoted(value)}"


def _text(one: Said) -> str:
    """The words of the mail if they are one sentence, else the change."""
    return one.quote[0].strip() if len(one.quote) == 1 else one.change


def _comment(text: str, *, indent: str = "") -> Iterator[str]:
    lines = textwrap.wrap(
        printable(text), _WIDTH, break_long_words=False, break_on_hyphens=False
    )
    for number, line in enumerate(lines):
        yield f"# {indent}{'  ' if number else ''}{line}"


def _quoted(text: str) -> str:
    """Write a TOML basic string; its escapes are those of JSON."""
    return json.dumps(printable(text), ensure_ascii=False)


# ---- a study without runs -----------------------------------------------------------


def unmeasured(folder: Path) -> dict[str, Any]:
    """What ``patchstudy check`` says of a study without any raw file: what to do next.

    Returns
    -------
    dict
        As ``listing.checked``; status 1.
    """
    design = read_design(folder)
    return {
        "study": "/".join(folder.resolve().parts[-2:]),
        "runs": [],
        "files": 0,
        "not_used": [],
        "doubts": list(_next_steps(folder, design)),
        "noise": [],
        "margins": [],
        "status": 1,
    }


def _next_steps(folder: Path, design: Design) -> Iterator[dict[str, str]]:
    place = folder / f"<device>/{design.baseline}/boot-01/run-01/<workload>.<tool>"
    plan = f"patchstudy plan {folder} --sd '2 %'"
    steps = [
        f"copy raw files to {place} and so on"
        if design.layout == LAYOUT
        else f"lay raw files out as {design.layout} in {folder}",
        f"{plan} says how many runs it takes and in which order",
        f"patchstudy check {folder} again",
    ]
    yield _doubt(
        "no-runs", "no runs yet: nothing can be compared", "; then ".join(steps)
    )
    for number, one in enumerate(design.claims, start=1):
        told = claims.by_the_mail(one)
        text = f"claim {number} ({one.change or one.text}): {told.outcome}, {told.why}"
        yield _doubt("claim", text, "", severity="note")


def _doubt(
    code: str, text: str, todo: str, *, severity: str = "doubt"
) -> dict[str, str]:
    return {
        "severity": severity,
        "code": code,
        "device": "",
        "workload": "",
        "question": "",
        "text": text,
        "todo": todo,
    }


def steps(started: Started) -> Sequence[str]:
    """Return what to do with a new study, one step a line."""
    toml = started.folder / "study.toml"
    found = (
        f"{started.claims} claims to confirm, {started.rest} lines with numbers left "
        "as comments"
    )
    return (
        f"{toml}: written ({found})",
        "next: read it from top to bottom; confirm or strike each claim; add guards",
        f"next: copy raw files to {started.folder}/<device>/baseline/boot-01/run-01/",
        f"next: patchstudy check {started.folder}",
    )
