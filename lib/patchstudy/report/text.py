"""The plain-text block for the mailing list: ASCII, 72 columns, safe in a patch.

It survives ``git am``, ``git mailinfo`` and ``checkpatch.pl``: no line begins with
three dashes, ``diff``, ``Index:`` or ``#``, none is longer than 72 columns, and no bare
hash of 12 to 40 digits occurs (kernel documentation, process/submitting-patches.rst).
"""

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from patchstudy import claims
from patchstudy.checks import orders
from patchstudy.compare import Comparison
from patchstudy.decisions import Decision
from patchstudy.errors import StudyError, printable
from patchstudy.findings import Assessment, assess
from patchstudy.metrics import Kind, Scale
from patchstudy.report import answer, noise
from patchstudy.report.results import inputs_digest
from patchstudy.sentences import (
    GUARD_WORDS,
    change_in_words,
    floor_of,
    moved_in_words,
    replication_in_words,
    shared_unit,
    values_in_words,
)
from patchstudy.study import Role, hide, is_published
from patchstudy.units import with_interval
from patchstudy.verdicts import (
    AT_LEAST,
    LAYOUT_NOISE,
    Finding,
    Guarded,
    Verdict,
)
from patchstudy.weighing import brief

WIDTH: Final = 72

_HASH: Final = re.compile(r"\b([0-9a-f]{10})[0-9a-f]{2,30}\b", re.IGNORECASE)
_CUTS: Final = re.compile(r"---|diff |Index:|#|From[ :]|Subject:|Date:|>")
_ASCII: Final = str.maketrans(
    {"±": "+/-", "µ": "u", "μ": "u", "–": "-", "—": "-", "−": "-", "→": "->", "×": "x"}
)
_SHOWN: Final = (Role.PRIMARY, Role.CONTROL, Role.GUARD)
_VERDICT_WORDS: Final = {
    Verdict.BETTER: "better",
    Verdict.WORSE: "worse",
    Verdict.EQUIVALENT: "equal",
    Verdict.INCONCLUSIVE: "open",
    Verdict.SATURATED: "full",
    Verdict.NOT_ASSESSABLE: "n/a",
}
_GUARD_WORDS: Final = {
    Guarded.SAFE: "safe",
    Guarded.HARM: "harm",
    Guarded.BROKEN: "VETO",
    Guarded.UNRESOLVED: "open",
    Guarded.NOT_MEASURED: "n/m",
}
_MEANINGS: Final = {
    "small": "a real change below the margin",
    "better>=": "better by at least the near end, a ceiling hides the rest",
    "worse>=": "worse by at least the near end, a ceiling hides the rest",
    "equal": "no difference beyond the margin",
    "open": "the data cannot tell",
    "layout": "not distinguishable from code placement",
    "full": "both variants reach the ceiling",
    "n/a": "not assessable",
    "safe": "harm beyond the margin is excluded",
    "harm": GUARD_WORDS[Guarded.HARM],
    "VETO": GUARD_WORDS[Guarded.BROKEN],
    "n/m": "declared but not measured",
}


#: How the variants took turns, in words.
_ORDER_WORDS: Final = {
    "ABBA": "balanced within each block (ABBA)",
    "ABAB": "the same variant first in every block (ABAB)",
    "AABB": "the same variant first in every block (AABB)",
    "mixed": "variants in turn, mixed",
    "unbalanced": "one variant earlier on average",
    "sequential": "one variant after the other",
    "rechecked": "one after the other, then the baseline again",
    "unknown": "not known",
}
#: Narrowest and widest block.
NARROWEST: Final = 60
WIDEST: Final = 100


def for_mail(assessment: Assessment) -> Assessment:
    """Return the same without names and addresses of the raw files (``study.hide``)."""
    hidden = hide(assessment.study)
    return assessment if hidden is assessment.study else assess(hidden)


def text(assessment: Assessment, *, width: int = WIDTH) -> str:
    """Write the block for a mail; it ends with a line break.

    Parameters
    ----------
    width
        Longest line, from ``NARROWEST`` to ``WIDEST`` columns.
    """
    return finished(_block(assessment, Paper(width=width)))


def cover(assessment: Assessment, *, width: int = WIDTH) -> str:
    """Write the block for a cover letter: the verdict first, the way back last."""
    paper = Paper(width=width)
    inputs = inputs_digest(assessment.study.files)
    return finished(
        [
            *paper.wrapped("Performance"),
            "===========",
            "",
            *paper.wrapped(answer.headline(assessment)),
            "",
            *_block(assessment, paper),
            *paper.wrapped(
                f"Made by: patchstudy report --study {assessment.study.name}; raw "
                f"files: {len(assessment.study.files)}, sha256 of their list begins "
                f"with {inputs[:10]}."
            ),
        ]
    )


def trailer(assessment: Assessment, *, width: int = WIDTH) -> str:
    """Write trailers for a commit message: one a fact, long ones folded."""
    paper = Paper(width=width)
    shown = [one for one in answer.told(assessment) if one.role in _SHOWN]
    facts = [
        ("Perf-decision", answer.decision_in_words(assessment)),
        *(("Perf-change", _change_fact(one)) for one in _decisive(shown)),
        *(("Perf-guard", _guard_fact(one)) for one in shown if one.guarded),
        ("Perf-design", design_in_words(assessment)),
        *(("Perf-doubt", one) for one in _doubts(assessment)),
        ("Perf-not-measured", "; ".join(answer.not_measured(assessment)) or "nothing"),
    ]
    return finished([line for name, fact in facts for line in paper.fact(name, fact)])


def _decisive(findings: Iterable[Finding]) -> Iterator[Finding]:
    for one in findings:
        if one.role is not Role.GUARD and one.comparison.change is not None:
            yield one


def _change_fact(one: Finding) -> str:
    role = "control, " if one.role is Role.CONTROL else ""
    base, new = values_in_words(one.comparison)
    unit = shared_unit(one.comparison)[1]
    return (
        f"{role}{one.planned.metric.name} {base} -> {new} {unit}, ".replace(" ,", ",")
        + f"{change_in_words(one.comparison)}, {one.verdict}, {_place(one)}"
    )


def _guard_fact(one: Finding) -> str:
    said = GUARD_WORDS[one.guarded or Guarded.NOT_MEASURED]
    name, margin = one.planned.metric.name, one.planned.margin.text
    if one.comparison.change is None:
        return f"{name} {said}, {_place(one)}"
    change, moved = change_in_words(one.comparison), moved_in_words(one.comparison)
    moved = f"{moved}, " * bool(moved)
    return f"{name} {said}, {moved}{change}, margin {margin}, {_place(one)}"


def _place(one: Finding) -> str:
    question = one.comparison.question
    variant = "" if one.comparison.variant == "patched" else one.comparison.variant
    place = ", ".join(filter(None, (question.workload, question.device, variant)))
    if one.comparison.change is None:
        return place
    return f"{place}, {replication_in_words(one.comparison)}"


def design_in_words(assessment: Assessment) -> str:
    """The unit of analysis and the order of the variants, where they differ by place.

    ``unit of analysis boot, order balanced within each block (ABBA)``
    """
    taken = orders(assessment.material)
    found: dict[str, list[str]] = {}
    for one in answer.told(assessment):
        question, comparison = one.comparison.question, one.comparison
        if comparison.change is None:
            continue
        unit = comparison.unit_of_analysis.partition(" (")[0]
        order = _ORDER_WORDS[taken.get((question.device, question.workload), "unknown")]
        place = f"{question.workload} on {question.device}"
        found.setdefault(f"unit of analysis {unit}, order {order}", []).append(place)
    if len(found) < 2:
        return "; ".join(found) or "nothing could be compared"
    return "; ".join(
        f"{words}: {', '.join(dict.fromkeys(places))}"
        for words, places in found.items()
    )


def _block(assessment: Assessment, paper: "Paper") -> Iterator[str]:
    study = assessment.study
    shown = answer.told(assessment)
    decision = answer.decision_in_words(assessment)
    yield from paper.wrapped(f"{study.title}: {decision}")
    yield ""
    yield from paper.wrapped(study.design.question)
    yield from paper.wrapped(study.design.setting)
    yield ""
    yield from _tables(shown, 1 - study.design.alpha, paper)
    yield from paper.wrapped(_legend(shown))
    yield ""
    for title, parts in (
        ("Design", [design_in_words(assessment)]),
        ("Why", _reasons(assessment)),
        ("Mechanism", _mechanism(assessment)),
        ("Claims", _claims(assessment)),
        ("Noise", noise.sentences(assessment)),
        ("Doubts", _doubts(assessment)),
        ("Not measured", answer.not_measured(assessment)),
    ):
        yield from paper.paragraph(title, parts)


def _claims(assessment: Assessment) -> Iterator[str]:
    """Say of each claim what becomes of it, in one clause for the mail and the data."""
    for one in claims.check(assessment):
        words = one.claim.said or one.claim.text
        given = one.mail.found is not None
        told = [f"{one.mail.outcome} by the mail, {one.mail.why}"] if given else []
        told += [
            f"{x.outcome} by {x.device or 'the data'}, {x.why}"
            for x in one.data
            if not (given and is_published(x.device))  # the mail's numbers once more
        ]
        yield f"{one.claim.metric} {words} {', and '.join(told)}"


def _doubts(assessment: Assessment) -> list[str]:
    return list(dict.fromkeys(one.sentence for one in answer.doubts(assessment)))


def finished(lines: Iterable[str]) -> str:
    """Join lines without empty ones at the end; no digest is taken for a commit."""
    kept = list(lines)
    while kept and not kept[-1]:
        kept.pop()
    return "\n".join(_HASH.sub(r"\1..", line) for line in kept) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """How wide lines may be; none may be taken for a part of a patch or of a mail."""

    width: int

    def __post_init__(self) -> None:
        if not NARROWEST <= self.width <= WIDEST:
            raise StudyError(
                f"a width of {self.width} columns; give {NARROWEST} to {WIDEST}"
            )

    def wrapped(self, words: str, *, indent: str = "") -> list[str]:
        """Break into lines."""
        clean = ascii_only(words)
        lines = self._lines(clean, indent)
        return self._lines(clean, " ") if any(map(_CUTS.match, lines)) else lines

    def paragraph(self, title: str, parts: Iterable[str]) -> Iterator[str]:
        """Yield the lines of one paragraph and an empty one, or nothing."""
        words = [part.rstrip(".") for part in parts]
        if words:
            yield from self.wrapped(f"{title}: {'; '.join(words)}.")
            yield ""

    def fact(self, name: str, words: str) -> list[str]:
        """Write one trailer; further lines begin with a blank."""
        lines = self._lines(f"{name}: {ascii_only(words)}", "")
        return [lines[0], *self._lines(" ".join(lines[1:]), " ")]

    def _lines(self, words: str, indent: str) -> list[str]:
        lines = textwrap.wrap(
            words,
            self.width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
        # A word that is broken exactly at the edge leaves its blank behind.
        return [line.rstrip() for line in lines]


def ascii_only(words: str) -> str:
    """Return one line of printable ASCII; what has no such form becomes an escape."""
    simple = unicodedata.normalize("NFKD", words.translate(_ASCII))
    kept = "".join(one for one in simple if not unicodedata.combining(one))
    line = printable(" ".join(kept.split()))
    return line.encode("ascii", errors="backslashreplace").decode("ascii")


def _tables(
    findings: Sequence[Finding], confidence: float, paper: Paper
) -> Iterator[str]:
    """Yield one table a device, workload, variant and replication."""
    groups: dict[str, list[Finding]] = {}
    for one in findings:
        if one.comparison.change is not None:
            groups.setdefault(_heading(one), []).append(one)
    head = ("  metric", "base", "patched", "change", f"{100 * confidence:g}% CI", "")
    for heading, members in groups.items():
        rows = [head, *map(_cells, members)]
        widths = _widths(rows, paper)
        yield from paper.wrapped(heading)
        yield ""
        for row in rows:
            yield from _row(row, widths, paper)
        yield ""


def _heading(finding: Finding) -> str:
    one = finding.comparison
    place = _with_variant(one.question.device, one.variant, named=bool(finding.named))
    return f"{place}, {one.question.workload}, {replication_in_words(one)}:"


def _with_variant(device: str, variant: str, *, named: bool) -> str:
    return f"{device}, {variant}" if named or variant != "patched" else device


_Row = tuple[str, str, str, str, str, str]


def _cells(finding: Finding) -> _Row:
    """Name with unit, both values, the change, its interval, the word for it."""
    one = finding.comparison
    unit = shared_unit(one)[1]
    name = ascii_only(f"{one.question.planned.metric.name} {unit}")
    return f"  {name}", *values_in_words(one), *_change(one), _word(finding)


def _widths(rows: Sequence[_Row], paper: Paper) -> list[int]:
    """Widths of the five columns before the word.

    They are the same in every table, unless a longer cell takes the blanks of others.
    """
    room = min(44, 23 + paper.width - WIDTH)
    longest = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    longest[0] = min(longest[0], room)
    usual = [room, 8, 8, 8, 14]
    widths = [max(pair) for pair in zip(usual, longest[:-1], strict=True)]
    over = sum(widths) + len(widths) + longest[-1] - paper.width
    for at in (1, 2, 3, 0):
        taken = max(0, min(over, widths[at] - longest[at]))
        widths[at] -= taken
        over -= taken
    return widths


def _row(row: _Row, widths: Sequence[int], paper: Paper) -> Iterator[str]:
    """Yield a row in one line; a long name, then a long interval, has its own."""
    *above, name = paper.wrapped(row[0].strip(), indent="  ")
    if len(name) > widths[0]:
        above, name = [*above, name], ""
    yield from above
    line = f"{name:<{widths[0]}}"
    for cell, width in zip(row[1:4], widths[1:4], strict=True):
        line += f" {cell:>{width}}"
    tail = f"{row[4]:>{widths[4]}} {row[5]}".rstrip()
    if len(line) + 1 + len(tail) <= paper.width:
        yield f"{line} {tail}"
    else:
        yield line
        yield f"{tail:>{paper.width}}"


def _change(one: Comparison) -> tuple[str, str]:
    if one.change is None:
        return "-", ""
    if one.change.value == 0 and one.effect is not None and one.effect.floored:
        return "0", "identical"
    if one.question.planned.metric.kind is Kind.EXACT:
        value = one.change.value / shared_unit(one)[0]
        return (f"{value:+.6g}", "exact") if value else ("0", "identical")
    ratio = one.scale is Scale.RATIO
    scale, sign = (0.01, "%") if ratio else (shared_unit(one)[0], "")
    numbers = [x / scale for x in (one.change.value, one.change.low, one.change.high)]
    value, low, high = with_interval(*numbers, floor=floor_of(one.scale))
    return f"{value}{sign}", f"[{low},{high}]"


def _word(finding: Finding) -> str:
    if finding.guarded is not None:
        return _GUARD_WORDS[finding.guarded]
    if "at most small" in finding.qualifiers:
        return "small"
    if LAYOUT_NOISE in finding.qualifiers:
        return "layout"
    if AT_LEAST in finding.qualifiers:
        return f"{_VERDICT_WORDS[finding.verdict]}>="
    return _VERDICT_WORDS[finding.verdict]


def _legend(findings: Sequence[Finding]) -> str:
    """Explain the words that occur, the margins and the interval."""
    compared = [one for one in findings if one.comparison.change is not None]
    if not compared:
        return "Nothing could be compared."
    words = dict.fromkeys(_word(one) for one in compared)
    meanings = [f"{word}: {_MEANINGS[word]}" for word in words if word in _MEANINGS]
    margins = dict.fromkeys(
        f"{one.planned.metric.name} {one.planned.margin.text}"
        for one in compared
        if one.role is not Role.DIAGNOSTIC
    )
    methods = dict.fromkeys(one.comparison.method for one in compared)
    parts = [
        f"Margins: {', '.join(margins)}" if margins else "",
        "; ".join(meanings),
        f"Intervals: {'; '.join(methods)}",
    ]
    return ". ".join(part for part in parts if part) + "."


def _reasons(assessment: Assessment) -> list[str]:
    several = len(assessment.devices) > 1
    named = len(assessment.study.design.patched) > 1
    if assessment.decision in {Decision.ACCEPT, Decision.SMALL} and not named:
        return [answer.headline(assessment)]
    return [
        f"{_with_variant(one.device, one.variant, named=named)}: {reason}"
        if several
        else reason
        for one in assessment.devices
        for reason in one.reasons
    ]


def _mechanism(assessment: Assessment) -> list[str]:
    """What is known of the named symbols and events, and how much they explain."""
    return [
        *(one.sentence for one in assessment.explanations),
        *(brief(one) for one in assessment.explained if one.removed is not None),
    ]
