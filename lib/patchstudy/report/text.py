"""The plain-text block for the mailing list: ASCII, 72 columns, safe in a patch.

It survives ``git am``, ``git mailinfo`` and ``checkpatch.pl``: no line begins with
three dashes, ``diff``, ``Index:`` or ``#``, none is longer than 72 columns, and no bare
hash of 12 to 40 digits occurs (kernel documentation, process/submitting-patches.rst).
"""

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from patchstudy import claims
from patchstudy.checks import Doubt
from patchstudy.compare import Comparison
from patchstudy.errors import printable
from patchstudy.findings import Assessment, assess
from patchstudy.metrics import Scale
from patchstudy.records import Severity
from patchstudy.sentences import replication_in_words, shared_unit, values_in_words
from patchstudy.study import Role, hide, is_published
from patchstudy.verdicts import (
    AT_LEAST,
    LAYOUT_NOISE,
    SHARE_SUBSTITUTE,
    SUBSTITUTE,
    UNEQUAL_RATE,
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
    Guarded.BROKEN: "BROKEN",
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
    "harm": "harm shown, within the margin",
    "BROKEN": "harm shown, beyond the margin",
    "n/m": "declared but not measured",
}


def for_mail(assessment: Assessment) -> Assessment:
    """Return the same without names and addresses of the raw files (``study.hide``)."""
    hidden = hide(assessment.study)
    return assessment if hidden is assessment.study else assess(hidden)


def text(assessment: Assessment) -> str:
    """Write the block; it ends with a line break."""
    study = assessment.study
    shown = [one for one in assessment.findings if _belongs(one, assessment)]
    lines = [
        *_wrapped(f"{study.title}: {assessment.decision}"),
        "",
        *_wrapped(study.design.question),
        *_wrapped(study.design.setting),
        "",
        *_tables(shown, 1 - study.design.alpha),
        *_wrapped(_legend(shown)),
        "",
        *_paragraph("Why", _reasons(assessment)),
        *_paragraph("Mechanism", _mechanism(assessment)),
        *_paragraph("Claims", _claims(assessment)),
        *_paragraph("Doubts", _doubts(assessment)),
        *_paragraph("Not measured", _not_measured(assessment)),
    ]
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(_HASH.sub(r"\1..", line) for line in lines) + "\n"


def ascii_only(words: str) -> str:
    """Return one line of printable ASCII; what has no such form becomes an escape."""
    simple = unicodedata.normalize("NFKD", words.translate(_ASCII))
    kept = "".join(one for one in simple if not unicodedata.combining(one))
    line = printable(" ".join(kept.split()))
    return line.encode("ascii", errors="backslashreplace").decode("ascii")


#: Qualifiers of findings whose role is not the declared one.
_MOVED = frozenset({SUBSTITUTE, SHARE_SUBSTITUTE, UNEQUAL_RATE})


def _belongs(one: Finding, assessment: Assessment) -> bool:
    declared = one.planned in assessment.study.design.metrics
    declared = declared or not _MOVED.isdisjoint(one.qualifiers)
    return declared and (one.role in _SHOWN or one.role is Role.DIAGNOSTIC)


def _tables(findings: Sequence[Finding], confidence: float) -> Iterator[str]:
    """Yield one table a device, workload, variant and replication."""
    groups: dict[str, list[Finding]] = {}
    for one in findings:
        if one.comparison.change is not None:
            groups.setdefault(_heading(one), []).append(one)
    interval = f"{100 * confidence:g}% CI"
    numbers = f"{'base':>8} {'patched':>8} {'change':>8} {interval:>14}"
    for heading, members in groups.items():
        yield from _wrapped(heading)
        yield ""
        yield f"  {'metric':<21} {numbers}"
        for member in members:
            yield from _row(member)
        yield ""


def _heading(finding: Finding) -> str:
    one = finding.comparison
    place = _with_variant(one.question.device, one.variant, named=bool(finding.named))
    return f"{place}, {one.question.workload}, {replication_in_words(one)}:"


def _with_variant(device: str, variant: str, *, named: bool) -> str:
    return f"{device}, {variant}" if named or variant != "patched" else device


def _row(finding: Finding) -> Iterator[str]:
    one = finding.comparison
    name = f"{one.question.planned.metric.name} {shared_unit(one)[1]}".strip()
    base, new = values_in_words(one)
    change, interval = _change(one)
    *above, name = _wrapped(name, indent="  ")
    if len(name) > 23:
        above, name = [*above, name], ""
    yield from above
    line = f"{name:<23} {base:>8} {new:>8} {change:>8}"
    tail = f"{interval:>14} {_word(finding)}"
    if len(line) + 1 + len(tail) <= WIDTH:
        yield f"{line} {tail}"
    else:
        yield line
        yield f"{tail:>{WIDTH}}"


def _change(one: Comparison) -> tuple[str, str]:
    if one.change is None:
        return "-", ""
    if one.change.value == 0 and one.effect is not None and one.effect.floored:
        return "0", "identical"
    ratio = one.scale is Scale.RATIO
    scale, sign = (0.01, "%") if ratio else (shared_unit(one)[0], "")
    numbers = [x / scale for x in (one.change.value, one.change.low, one.change.high)]
    digits = _digits(numbers[2] - numbers[1])
    value, low, high = (f"{number:+.{digits}f}" for number in numbers)
    return f"{value}{sign}", f"[{low},{high}]"


def _digits(width: float) -> int:
    """Digits after the point, so that narrow intervals do not look like none."""
    steps = ((0.002, 4), (0.02, 3), (0.2, 2), (20.0, 1))
    return next((digits for below, digits in steps if width < below), 0)


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
    return [
        f"{_with_variant(one.device, one.variant, named=named)}: {reason}"
        if several
        else reason
        for one in assessment.devices
        for reason in one.reasons
    ]


def _claims(assessment: Assessment) -> Iterator[str]:
    """Say of each claim what becomes of it, in one clause for the mail and the data."""
    for one in claims.check(assessment):
        words = one.claim.change or one.claim.text
        given = one.mail.found is not None
        told = [f"{one.mail.outcome} by the mail, {one.mail.why}"] if given else []
        told += [
            f"{x.outcome} by {x.device or 'the data'}, {x.why}"
            for x in one.data
            if not (given and is_published(x.device))  # the mail's numbers once more
        ]
        yield f"{one.claim.metric} {words} {', and '.join(told)}"


def _mechanism(assessment: Assessment) -> list[str]:
    """What is known of the named symbols and events, and how much they explain."""
    return [
        *(one.sentence for one in assessment.explanations),
        *(brief(one) for one in assessment.explained if one.removed is not None),
    ]


def _doubts(assessment: Assessment) -> list[str]:
    """Doubts that touch a declared metric, and qualifiers of the primary ones."""
    declared = [one for one in assessment.findings if _belongs(one, assessment)]
    texts = dict.fromkeys(
        _doubt_words(one)
        for one in assessment.doubts
        if one.caveat.severity != Severity.NOTE
        and any(one.concerns(finding.comparison.question) for finding in declared)
    )
    qualifiers = dict.fromkeys(
        word
        for one in declared
        if one.role is Role.PRIMARY
        for word in one.qualifiers
        if word in _TOLD
    )
    failed = [
        one.sentence
        for one in assessment.findings
        if one.planned.metric.name == "failed_runs"
    ]
    return [*texts, *qualifiers, *failed]


def _doubt_words(doubt: Doubt) -> str:
    metric = doubt.question.rsplit("/", 1)[-1]
    return f"{metric}: {doubt.caveat.text}" if metric else doubt.caveat.text


_TOLD: Final = frozenset(
    {"one build each", "fragile", LAYOUT_NOISE, "order re-checked"}
)


def _not_measured(assessment: Assessment) -> list[str]:
    missing = [
        f"{one.planned.metric.name} on {one.comparison.question.workload}"
        for one in assessment.findings
        if one.comparison.question.problem and one.role is not Role.MECHANISM
    ]
    return [*missing, *assessment.study.design.not_measured]


def _paragraph(title: str, parts: Iterable[str]) -> Iterator[str]:
    words = [part.rstrip(".") for part in parts]
    if words:
        yield from _wrapped(f"{title}: {'; '.join(words)}.")
        yield ""


def _wrapped(words: str, *, indent: str = "") -> list[str]:
    """Break into lines; none may be taken for a part of a patch or of a mail."""
    clean = ascii_only(words)
    lines = _lines(clean, indent)
    return _lines(clean, " ") if any(map(_CUTS.match, lines)) else lines


def _lines(words: str, indent: str) -> list[str]:
    lines = textwrap.wrap(
        words,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
    # A word that is broken exactly at the edge leaves its blank behind.
    return [line.rstrip() for line in lines]
