"""A real report in a real browser: no errors, no requests, nothing too wide."""

import shutil
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from patchstudy.report import batch

pytestmark = pytest.mark.browser
QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
WIDTHS = [390, 1280]
STUDY = "qmi_wwan/same-module-sequential"


@pytest.fixture(scope="session")
def reports(data, tmp_path_factory):
    """Return a folder with the report of the smallest shipped study and its index."""
    order = batch.Order(
        out=tmp_path_factory.mktemp("reports"),
        formats=("html",),
        notebook=batch.shipped("patch.ipynb"),
        jobs=1,
    )
    folder = data / STUDY
    outcomes = batch.report_all([folder], order, tell=lambda _: None)
    assert [one.error for one in outcomes] == [""]
    batch.index(outcomes, order)
    return order.out


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Return a headless Chromium, or skip."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no chromium on PATH: the page is not looked at")
    with sync_api.sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"),
            executable_path=program,
            headless=True,
            args=QUIET,
            ignore_default_args=["--enable-automation"],
        )
        yield context
        context.close()


@pytest.fixture(params=["index.html", f"{STUDY}/report.html"], scope="module")
def page(request, browser, reports):
    """Open a page; return it with what it asked for and what it complained of."""
    opened = browser.new_page()
    told, asked = [], []
    opened.on("console", lambda message: told.append(message.text))
    opened.on("pageerror", lambda error: told.append(str(error)))
    opened.on("request", lambda one: asked.append(one.url))
    opened.goto((reports / request.param).as_uri())
    yield opened, asked, told
    opened.close()


def evaluate(page, program):
    return page[0].evaluate(program)


def test_the_page_asks_for_nothing_and_complains_of_nothing(page):
    _, asked, told = page
    assert told == []
    assert [url for url in asked if not url.startswith("data:")] == [page[0].url]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_is_not_wider_than_the_window(page, width):
    page[0].set_viewport_size({"width": width, "height": 800})
    assert evaluate(page, "document.documentElement.scrollWidth") <= width
    assert evaluate(page, "innerWidth") == width


@pytest.mark.parametrize("width", WIDTHS)
def test_what_is_wider_can_be_scrolled_by_itself(page, width):
    """No element but one inside a region that scrolls leaves the window."""
    page[0].set_viewport_size({"width": width, "height": 800})
    outside = """[...document.querySelectorAll('main *')].filter(one =>
        one.getBoundingClientRect().right > innerWidth + 1
        && !one.closest('.table, pre, details, nav, .scroll'))
        .map(one => one.outerHTML)"""
    assert evaluate(page, outside) == []


def test_every_picture_is_there_and_described(page):
    wrong = """[...document.images].filter(one =>
        !one.alt || !one.complete || !one.naturalWidth).length"""
    assert evaluate(page, wrong) == 0
    assert evaluate(page, "document.images.length") >= 1


def test_headings_are_in_order(page):
    levels = evaluate(
        page,
        "[...document.querySelectorAll('h1,h2,h3,h4')].map(one => +one.tagName[1])",
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_entry_of_the_contents_leads_somewhere(page):
    lost = """[...document.querySelectorAll('nav a')].filter(one =>
        !document.getElementById(decodeURIComponent(one.hash.slice(1)))).length"""
    assert evaluate(page, lost) == 0
    assert evaluate(page, "document.querySelectorAll('nav a').length") >= 3


def test_no_traceback_and_no_placeholder_is_seen(page):
    text = page[0].inner_text("body")
    assert len(text) > 200
    for word in ("Traceback", "undefined", "[object", "NaN", "<Note", "Note("):
        assert word not in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing_to_complain_of(page, width, scheme):
    """WCAG 2.1 A and AA: contrast, names, headings, regions that scroll."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page[0].set_viewport_size({"width": width, "height": 800})
    page[0].emulate_media(color_scheme=scheme)
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
    rules = {"runOnly": {"type": "tag", "values": tags}}
    found = axe.Axe().run(page[0], options=rules)
    assert [
        (one["id"], node["html"])
        for one in found.response["violations"]
        for node in one["nodes"]
    ] == []
    page[0].emulate_media(color_scheme="light")


@pytest.fixture
def report(browser, reports):
    """Open the report alone, as a reader does."""
    opened = browser.new_page()
    opened.set_viewport_size({"width": 1440, "height": 900})
    opened.goto((reports / STUDY / "report.html").as_uri())
    yield opened
    opened.close()


@pytest.mark.parametrize("size", [(1440, 900), (400, 850)])
def test_the_answer_stands_on_the_first_screen(report, size):
    report.set_viewport_size({"width": size[0], "height": size[1]})
    seen = """[...document.querySelectorAll('h1, .note.question, .note.notyet,'
        + '.intervals li svg, .marks li')].filter(one =>
        one.getBoundingClientRect().top + 20 < innerHeight).length"""
    assert report.evaluate(seen) >= 6
    above = """[...document.querySelectorAll('details.code')].filter(one =>
        one.getBoundingClientRect().top
        < document.querySelector('.marks').getBoundingClientRect().bottom).length"""
    assert report.evaluate(above) == 0


def test_a_click_on_a_heading_sorts_and_another_turns_round(report):
    heads = report.locator("details.rows table thead th button")
    report.locator("details.rows summary").first.click()
    order = """[...document.querySelector('details.rows tbody').rows]
        .map(one => parseFloat(one.cells[4].textContent))"""
    heads.nth(4).click()
    rising = report.evaluate(order)
    assert rising == sorted(rising)
    assert len(rising) == 10
    heads.nth(4).click()
    assert report.evaluate(order) == sorted(rising, reverse=True)
    sorts = "document.querySelectorAll('[aria-sort]').length"
    assert report.evaluate(sorts) == 1


def test_a_table_can_be_copied_as_text(report):
    report.evaluate(
        "navigator.clipboard.writeText = async (text) => { window.copied = text; }"
    )
    buttons = report.locator("#guards").locator("xpath=../following-sibling::button")
    buttons.first.click()
    lines = report.evaluate("window.copied").splitlines()
    assert lines[0].startswith("Guards: what the patch may cost")
    assert lines[2].split()[:3] == ["Metric", "Where", "Baseline"]
    assert len(lines) >= 4


def test_a_number_leads_to_its_runs_which_unfold(report):
    report.locator("#changes td a").first.click()
    assert report.evaluate("location.hash").startswith("#runs-")
    assert report.locator("details.rows[open]").count() == 1


def test_every_run_leads_to_its_raw_file(report, data):
    links = report.evaluate(
        "[...document.querySelectorAll('details.rows td:last-child a')]"
        ".map(one => one.href)"
    )
    assert len(links) >= 10
    for link in links:
        assert link.startswith((data / STUDY).as_uri())
        assert Path(unquote(urlparse(link).path)).is_file()


def test_the_contents_follow_the_reader(report):
    report.locator("#how-far-to-trust-it").scroll_into_view_if_needed()
    report.evaluate("document.getElementById('how-far-to-trust-it').scrollIntoView()")
    # no wait_for_function: the page's policy lets nothing be evaluated
    current = report.locator("nav a[aria-current]")
    report.locator("nav a[aria-current][href='#how-far-to-trust-it']").wait_for()
    assert current.count() == 1
    top = "document.querySelector('nav').getBoundingClientRect().top"
    assert 0 <= report.evaluate(top) < 100


def test_the_page_is_complete_without_its_script(report, reports):
    hidden = (
        "[...document.querySelectorAll('main > *')].filter(one => one.hidden).length"
    )
    assert report.evaluate(hidden) == 0
    html = (reports / STUDY / "report.html").read_text(encoding="utf-8")
    assert html.count("<button") == html.count("hidden>") == 0


def test_rows_of_the_index_can_be_chosen(browser, reports):
    page = browser.new_page()
    page.goto((reports / "index.html").as_uri())
    labels = page.locator(".choices label").all_inner_texts()
    page.close()
    assert labels == [] or len(labels) == 4


def test_links_of_the_index_lead_to_files(browser, reports):
    page = browser.new_page()
    page.goto((reports / "index.html").as_uri())
    links = page.evaluate(
        "[...document.querySelectorAll('.table td a, .table th a')]"
        ".map(one => one.getAttribute('href'))"
    )
    page.close()
    files = [link for link in links if not link.startswith("#")]
    assert {"html", "json", "ipynb"} == {link.rpartition(".")[2] for link in files}
    assert all((reports / link).is_file() for link in files)
