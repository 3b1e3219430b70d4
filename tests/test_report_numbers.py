"""Every number that a report prints stands in its report.json.

A number of two digits is found in so many values by chance that this proves little of
it; one of four or more is not.
"""

import json
import math
import re
from bisect import bisect_left

import pytest
from bs4 import BeautifulSoup

from patchstudy.report import batch, html, text
from patchstudy.report.markdown import markdown
from patchstudy.report.results import results
from patchstudy.report.run import Run, execute

STUDIES = ["tmi_lab/buffer-pool-same-allocator", "e1000/rx-prefetch"]
NUMBER = re.compile(
    r"(?<![\w.])[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?![\w.]*\w)"
)
#: What a value of report.json may be multiplied with for people: prefixes, percent.
SCALES = [10.0**power for power in (-12, -9, -6, -3, 0, 2, 3, 6, 9, 12)]


def number(words):
    """Return the value of a printed number."""
    return float(words.replace("−", "-").replace(",", ""))


class Known:
    """All numbers of a report.json, in each unit that people may read them in."""

    def __init__(self, content):
        told = json.dumps(content, ensure_ascii=False)
        self.words = set(NUMBER.findall(told))
        self.digests = {one[:12] for one in re.findall(r"\b[0-9a-f]{64}\b", told)}
        found = sorted(set(self._numbers(content)))
        self.numbers = sorted({abs(x * scale) for x in found for scale in SCALES})

    def _numbers(self, node):
        if isinstance(node, dict):
            for one in node.values():
                yield from self._numbers(one)
        elif isinstance(node, list):
            for one in node:
                yield from self._numbers(one)
        elif isinstance(node, int | float):
            yield float(node)
        elif isinstance(node, str):
            yield from map(number, NUMBER.findall(node))

    def has(self, printed):
        """Say whether a value, rounded as it is printed, gives the words."""
        if printed in self.words:
            return True
        plain = printed.replace(",", "")
        value = abs(number(plain))
        digits = len(plain.partition("e")[0].partition(".")[2])
        power = int(plain.partition("e")[2] or 0)
        room = 0.5 * 10.0 ** (power - digits) * 1.001 + 1e-12
        at = bisect_left(self.numbers, value - room)
        return at < len(self.numbers) and self.numbers[at] <= value + room


def seen(page):
    """Return the words of a page that tell results: no code, no addresses."""
    soup = BeautifulSoup(page, "html.parser")
    for one in soup.select("head, script, style, details.code, nav"):
        one.decompose()
    for one in soup.select("img"):
        one.replace_with(f" {one['alt']} ")
    for one in soup.select("td, th, li, p, span, figcaption, caption, title, text"):
        one.append(" ")
    return soup.get_text()


def unknown(words, known, *, least):
    """Printed numbers of so many digits that are in no value of report.json."""
    plain = re.sub(
        r"\b[0-9a-f]{12}\b", lambda x: "" if x[0] in known.digests else x[0], words
    )
    printed = {one for one in NUMBER.findall(plain) if _digits(one) >= least}
    return sorted(one for one in printed if not known.has(one))


def _digits(printed):
    return len(re.sub(r"e.*|\D", "", printed).strip("0"))


@pytest.fixture(scope="module", params=STUDIES)
def report(request, data, assessed, tmp_path_factory):
    """Return the results, the page and the assessment of a shipped study."""
    folder = tmp_path_factory.mktemp("report")
    done = execute(
        Run(
            notebook=batch.shipped("patch.ipynb"),
            parameters={"study": str(data / request.param)},
            cwd=folder,
            timeout_s=600,
        )
    )
    assessment = assessed(request.param)
    return results(assessment), html.to_html(done, title=request.param), assessment


def test_every_number_of_the_page(report):
    content, page, _ = report
    assert unknown(seen(page), Known(content), least=2) == []


@pytest.mark.parametrize("form", [text.text, text.cover, text.trailer, markdown])
def test_every_number_of_the_text(report, form):
    content, _, assessment = report
    words = form(assessment).replace("\\", "")
    assert unknown(words, Known(content), least=2) == []


def test_a_wrong_number_would_be_found(report):
    known, content = Known(report[0]), report[0]
    change = content["comparisons"][0]["baseline"]["mean"]
    assert known.has(f"{change:.6g}")
    invented = f"{math.pi * change:.7g}"
    assert unknown(f"the mean is {invented}", known, least=2) == [invented]
