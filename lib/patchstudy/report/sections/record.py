"""Claims, all other metrics, the runs, and from which files a report was made."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from patchstudy.findings import Assessment
from patchstudy.report import ledger
from patchstudy.report.results import (
    checked_claims,
    digest,
    inputs_digest,
    results,
)
from patchstudy.report.sections.cells import (
    Part,
    level_of,
    number_columns,
    of_roles,
    p_in_words,
    place_of,
    quantity_of,
    replication_of,
    text_columns,
)
from patchstudy.report.table import Column, Note, Table
from patchstudy.sentences import change_in_words, values_in_words
from patchstudy.study import Role


def exploratory(assessment: Assessment) -> Part:
    """Metrics that nobody declared, or declared as diagnostics; not decided on."""
    chosen = [
        one
        for one in of_roles(assessment, Role.DIAGNOSTIC)
        if one.comparison.change is not None
    ]
    if not chosen:
        return Note("empty", "No further metric was measured.")
    rows = tuple(
        (
            quantity_of(one),
            place_of(one),
            *values_in_words(one.comparison),
            change_in_words(one.comparison),
            replication_of(one.comparison),
            p_in_words(one.comparison.p_adjusted),
        )
        for one in chosen
    )
    change = f"Change [{level_of(assessment)}]"
    numbers = ("Baseline", "Patched", change, "Runs", "p (BH)")
    return Table(
        (*text_columns("Metric", "Where"), *number_columns(*numbers)),
        rows,
        "Exploratory: looked at, not decided on (p after Benjamini-Hochberg)",
    )


def claims(assessment: Assessment) -> Part:
    """What the patch mail says, beside what was found."""
    checked = checked_claims(assessment)
    if not checked:
        return Note("empty", "No claim of a mail is recorded in study.toml.")
    rows = tuple(
        (
            one["text"],
            " ".join([one["metric"], one["device"], one["workload"]]).strip(),
            _stated(one),
            _outcome(one["from_mail"]),
            "; ".join(_outcome(x) for x in one["from_data"]),
        )
        for one in checked
    )
    names = ("Claim", "Of", "Stated", "By the mail's own numbers", "By the data")
    caption = (
        "Claims: in brackets what rounding leaves (the mail's numbers) or the "
        "confidence interval (data)"
    )
    return Table(text_columns(*names), rows, caption)


def _stated(claim: Mapping[str, Any]) -> str:
    beside = f" to {claim['reference']}" if claim["reference"] else ""
    return (claim["change"] or "-") + beside


def _outcome(check: Mapping[str, Any]) -> str:
    where = ", ".join(one for one in (check["device"], check["workload"]) if one)
    told = f"{check['outcome']} ({check['why']})"
    return f"{where}: {told}" if where else told


def behind(assessment: Assessment) -> tuple[Part, ...]:
    """Every measured run with its values and its raw files."""
    return ledger.tables(assessment) or (Note("empty", "No run was measured."),)


def provenance(assessment: Assessment) -> tuple[Part, ...]:
    """The raw files by tool, and the digests by which this report can be checked."""
    by_tool: dict[str, dict[str, str]] = {}
    for run in assessment.study.runs:
        for source in run.sources:
            path = source.capture.path.relative_to(assessment.study.folder).as_posix()
            files = by_tool.setdefault(source.capture.tool, {})
            files[path] = source.capture.sha256
    rows = tuple(
        (tool, str(len(files)), inputs_digest(files))
        for tool, files in sorted(by_tool.items())
    )
    made = results(assessment)["provenance"]
    versions = ", ".join(f"{name} {x}" for name, x in made["versions"].items())
    return (
        Table(
            (Column("Tool"), Column("Files", "right"), Column("sha256 of their list")),
            rows,
            "Raw files (of a before/after pair the later one); report.json lists the "
            "sha256 of every file",
        ),
        *_published(made["published"]),
        Note("text", f"All inputs: sha256 {made['inputs_sha256']}."),
        Note("text", f"study.toml: sha256 {assessment.study.design.digest}."),
        Note("text", f"Results (report.json): sha256 {digest(assessment)}."),
        Note("text", f"Made by: {made['command']}, with {versions}."),
        *_hidden_words(made["hidden_names"]),
    )


def _published(told: Mapping[str, Sequence[str]]) -> Iterator[Note]:
    """Say of each device whose values were published where they were."""
    for device, places in told.items():
        yield Note("text", f"{device}: not measured here; from {'; '.join(places)}.")


def _hidden_words(count: int) -> Iterator[Note]:
    if count:
        yield Note(
            "text",
            f"Names of hosts and users, and addresses, of the raw files: {count} "
            "replaced (host-1, user-1, mac-1, address-1); the raw files hold them.",
        )
