"""The outcomes of a batch as JUnit XML, which CI systems show."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

from patchstudy.errors import StudyError, printable
from patchstudy.report import files
from patchstudy.report.batch import Outcome


def store(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write the outcomes to a file, whole or not at all.

    Raises
    ------
    StudyError
        If it cannot be written.
    """
    try:
        files.write(path, junit(outcomes))
    except OSError as error:
        place = printable(str(path))
        raise StudyError(f"{place}: cannot be written ({error.strerror})") from error


def junit(outcomes: Sequence[Outcome]) -> bytes:
    """Return one test case a study: an error where it could not be reported.

    A study with a report whose decision is a veto is a failure; one whose raw files
    could not all be read is an error, as its exit status says.
    """
    errors = [one for one in outcomes if not one.ok]
    vetoes = [one for one in outcomes if one.ok and one.decision == "veto"]
    suite = ET.Element(
        "testsuite",
        name="patchstudy",
        tests=str(len(outcomes)),
        errors=str(len(errors)),
        failures=str(len(vetoes)),
        time=f"{sum(one.seconds for one in outcomes):.3f}",
    )
    for one in outcomes:
        driver, _, patch = printable(one.study).partition("/")
        case = ET.SubElement(
            suite, "testcase", classname=driver, name=patch, time=f"{one.seconds:.3f}"
        )
        told = [*one.error.splitlines(), *one.unread]
        if told:
            lines = [printable(line) for line in told]
            ET.SubElement(case, "error", message=lines[0]).text = "\n".join(lines)
        elif one.decision == "veto":
            lines = ["veto", *map(printable, one.worse)]
            ET.SubElement(case, "failure", message="veto").text = "\n".join(lines)
    ET.indent(suite)
    return ET.tostring(suite, encoding="utf-8", xml_declaration=True) + b"\n"
