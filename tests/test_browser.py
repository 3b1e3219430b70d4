"""A real report in a real browser: no errors, no requests, nothing too wide."""

import shutil
from itertools import pairwise

import pytest

from patchstudy.report import batch

pytestmark = pytest.mark.browser
QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
WIDTHS = [390, 1280]


@pytest.fixture(scope="session")
def reports(data, tmp_path_factory):
    """Return a folder with the report of the smallest shipped study and its index."""
    order = batch.Order(
        out=tmp_path_factory.mktemp("reports"),
        formats=("html",),
        notebook=batch.shipped("patch.ipynb"),
        jobs=1,
    )
    folder = data / "qmi_wwan" / "same-module-sequential"
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


@pytest.fixture(
    params=["index.html", "qmi_wwan/same-module-sequential/report.html"], scope="module"
)
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
        && !one.closest('.table, pre, details')).map(one => one.outerHTML)"""
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


def test_links_of_the_index_lead_to_files(browser, reports):
    page = browser.new_page()
    page.goto((reports / "index.html").as_uri())
    links = page.evaluate(
        "[...document.querySelectorAll('main li a')]"
        ".map(one => one.getAttribute('href'))"
    )
    page.close()
    files = [link for link in links if not link.startswith("#")]
    assert {"html", "json", "ipynb"} == {link.rpartition(".")[2] for link in files}
    assert all((reports / link).is_file() for link in files)
