"""What a kernel hands over beside the notebook's own outputs: the results themselves.

``report.json`` and the text are written from the assessment that the shipped notebook
made and shows, in the process that made it: nothing is worked out twice.
"""

from collections.abc import Mapping
from typing import Any

from IPython.display import display

from patchstudy.findings import Assessment, Verdict, assess
from patchstudy.report import results
from patchstudy.report.handing import MIME
from patchstudy.report.text import for_mail, text
from patchstudy.study import hide, open_study


def hand_over(study: str, own: Assessment | None, *, redact: bool) -> None:
    """Show the results of a study as an output of the type ``MIME``.

    Parameters
    ----------
    study
        Its folder.
    own
        The assessment that the notebook made; None to make it here.
    redact
        Keep names and addresses of the raw files out of the one that is made here.
    """
    assessment = own or assess(hide(open_study(study), wanted=redact))
    display({MIME: handed(assessment)}, raw=True)


def handed(assessment: Assessment) -> Mapping[str, Any]:
    """Return the results as plain JSON values."""
    study = assessment.study
    return {
        "json": results.written(assessment).decode("utf-8"),
        "digest": results.digest(assessment),
        "text": text(for_mail(assessment)),
        "title": study.title,
        "question": study.design.question,
        "decision": str(assessment.decision),
        "unread": [[one.path, one.reason] for one in study.leftovers if one.broken],
        "worse": [
            f"{one.comparison.question.device}: {one.planned.metric.name}"
            for one in assessment.findings
            if one.verdict is Verdict.WORSE
        ],
    }
