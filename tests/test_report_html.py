"""The page: self-contained, safe, accessible, the same every time."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from patchstudy.report.html import to_html
from patchstudy.report.lead import (
    Interval,
    Intervals,
    Mark,
    Marks,
    intervals_to_html,
    marks_to_html,
)
from patchstudy.report.outputs import parts
from patchstudy.report.table import Column, Linked, Note, Table, Vector

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>'
TABLE = Table((Column("Device"), Column("n", "right")), (("mt7621", "20"),), "Runs.")
ATTACKS = [
    "<script>alert(1)</script>",
    '"><img src=http://evil.example/x onerror=alert(1)>',
    "<style>@import url(http://evil.example/x)</style>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1)) ![y](http://evil.example/y.png)",
    "</title></main></body><base href=//evil.example>",
]


def cell(shown, source="show()"):
    bundle = shown._repr_mimebundle_()
    data, about = bundle if isinstance(bundle, tuple) else (bundle, {})
    output = new_output("execute_result", data, metadata=about, execution_count=1)
    return new_code_cell(source, outputs=[output], execution_count=1)


def printing(text, name="stdout"):
    return new_code_cell("p", outputs=[new_output("stream", name=name, text=text)])


def page(*cells, title="qmi_wwan: headroom"):
    return to_html(new_notebook(cells=list(cells)), title=title)


def everywhere(text):
    """A page with the text in every place that text can come from."""
    error = new_output("error", ename=text, evalue=text, traceback=[text])
    html = new_output("display_data", {"text/html": text})
    plain = new_output("display_data", {"text/plain": text})
    markdown = new_output("display_data", {"text/markdown": text})
    return page(
        new_markdown_cell(f"# {text}\n\n{text}\n\n## {text}\n\n    {text}\n\n`{text}`"),
        cell(Table((Column(text),), ((text,),), text), source=text),
        cell(Note("caveat", text)),
        cell(Vector(SVG, text, text)),
        printing(text),
        new_code_cell(text, outputs=[error, html, plain, markdown]),
        title=text,
    )


class Elements(HTMLParser):
    """All elements of a page with their attributes."""

    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def all(self, name):
        return [attributes for tag, attributes in self.found if tag == name]


def assert_self_contained(html):
    elements = Elements(html).found
    tags = {tag for tag, _ in elements}
    assert not tags & {"link", "iframe", "object", "embed", "base", "form"}
    assert elements.count(("script", {})) == len(Elements(html).all("script")) == 1
    for tag, attributes in elements:
        assert not [name for name in attributes if name.startswith("on")]
        assert attributes.get("src", "data:image/").startswith("data:image/")
        if tag == "a":
            assert re.match(r"#|https?://", attributes["href"])
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)[1]
    assert "url(" not in style
    assert "@import" not in style


def script_of(html):
    """Return the one script of a page."""
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    return script


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_hostile_runs_or_loads(attack):
    html = everywhere(attack)
    assert_self_contained(html)
    assert html.count("<style>") == html.count("</title>") == html.count("<main>") == 1
    assert html.count("<script>") == html.count("</script>") == 1
    assert script_of(html) == script_of(page())


def test_markup_from_files_is_seen_as_text():
    html = page(new_markdown_cell(ATTACKS[0]), cell(Note("text", ATTACKS[1])))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "&gt;&lt;img src=http://evil.example/x onerror=alert(1)&gt;" in html


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\u202e", "\u2066", "\ud800"])
def test_control_characters_are_shown_as_escapes(character):
    html = everywhere(f"a{character}b")
    assert character not in html
    assert character.encode("unicode_escape").decode() in html


def test_an_entity_cannot_bring_a_control_character_back():
    html = page(new_markdown_cell("a&#8238;b &lt;i&gt; &amp;"))
    assert r"<p>a\u202eb &lt;i&gt; &amp;</p>" in html


def test_a_refused_link_and_a_picture_become_text():
    html = page(new_markdown_cell(ATTACKS[4]))
    assert "<p>x (javascript:alert(1)) [y]</p>" in html


def test_a_link_of_the_notebook_stays():
    html = page(new_markdown_cell("[thread](https://lore.kernel.org/a?b=1&c=2)"))
    assert '<a href="https://lore.kernel.org/a?b=1&amp;c=2">thread</a>' in html


def test_the_page_forbids_what_it_does_not_need():
    html = page()
    digest = b64encode(sha256(script_of(html).encode()).digest()).decode()
    policy = (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'"
    )
    (meta,) = [m for m in Elements(html).all("meta") if "http-equiv" in m]
    assert meta == {"http-equiv": "Content-Security-Policy", "content": policy}


def test_the_script_asks_for_nothing_and_makes_no_markup_of_text():
    script = script_of(page())
    for word in ("fetch", "XMLHttp", "import", "innerHTML", "eval", "insertAdjacent"):
        assert word not in script


def test_language_title_and_width_are_declared():
    elements = Elements(page(title="a & b"))
    assert elements.all("html") == [{"lang": "en"}]
    assert "viewport" in [meta.get("name") for meta in elements.all("meta")]
    assert "<title>a &amp; b</title>" in page(title="a & b")


def test_equal_notebooks_give_equal_pages():
    cells = [new_markdown_cell("# a\n\n## b"), cell(TABLE), cell(Vector(SVG, "a", ""))]
    assert page(*cells) == page(*cells)


def test_the_notebook_is_left_as_it_was():
    notebook = new_notebook(cells=[new_markdown_cell("# a"), cell(TABLE)])
    before = str(notebook)
    to_html(notebook, title="a")
    assert str(notebook) == before


def test_equal_headings_get_different_ids():
    html = page(*[new_markdown_cell(f"## {text}") for text in ("A b", "A b", "A b 2")])
    ids = [heading["id"] for heading in Elements(html).all("h2")]
    assert ids == ["a-b", "a-b-2", "a-b-2-2"]


def test_contents_list_the_sections_after_title_and_answer():
    html = page(new_markdown_cell("# T\n\nanswer"), new_markdown_cell("## `A` & *b*"))
    assert (
        '<p>answer</p>\n<nav aria-label="Contents">\n<ol>\n'
        '<li><a href="#a-b">A &amp; b</a></li>\n</ol>\n</nav>\n<h2 id="a-b">'
    ) in html


def test_a_page_without_a_heading_gets_its_title():
    assert "<h1>qmi_wwan: headroom</h1>" in page(new_markdown_cell("text"))
    assert page(new_markdown_cell("# Own")).count("<h1") == 1


def test_every_figure_has_a_description_and_a_caption():
    html = page(cell(Vector(SVG, 'dots "above"', "Each dot is one run.")))
    (image,) = Elements(html).all("img")
    assert image["alt"] == 'dots "above"'
    assert image["src"].startswith("data:image/svg+xml;base64,")
    assert "<figcaption>Each dot is one run.</figcaption>" in html


def test_a_figure_without_a_description_says_so():
    output = new_output("display_data", {"image/png": "iVBORw0KGgo="})
    html = page(new_code_cell("plot()", outputs=[output]))
    assert 'alt="Figure without a description"' in html


def test_a_table_can_be_scrolled_with_the_keyboard():
    assert Elements(page(cell(TABLE))).all("div") == [
        {"class": "table", "role": "region", "tabindex": "0", "aria-label": "Runs."}
    ]


def test_a_long_table_is_folded_behind_its_caption():
    table = Table((Column("a"),), (("1",),), "Every run", name="runs-1", folded=True)
    html = page(cell(table))
    assert '<details class="rows"><summary>Every run</summary>' in html
    assert '<table id="runs-1" class="folded">' in html


def test_a_number_leads_to_its_runs_and_a_run_to_its_file():
    row = (Linked(("9+9", "#runs-1")), Linked(("a 1f", "../a%20b"), ("b 2e", "../b")))
    html = page(cell(Table((Column("Runs"), Column("Files")), (row,), "")))
    assert '<a href="#runs-1">9+9</a>' in html
    assert '<a href="../a%20b">a 1f</a>, <a href="../b">b 2e</a></td>' in html


def test_a_cell_cannot_bring_a_link_of_another_kind():
    table = Table((Column("a"),), ((Linked(("x", "javascript:alert(1)")),),), "")
    html = page(cell(table))
    assert Elements(html).all("a") == []
    assert ">x</th>" in html


def test_the_code_of_a_section_stands_folded_at_its_end():
    html = page(
        new_markdown_cell("# T"),
        cell(Note("accept", "Faster.", "ACCEPT"), source="verdict(study)"),
        new_markdown_cell("## Next"),
        cell(Note("text", "one"), source="first()"),
        cell(Note("text", "two"), source="second()"),
    )
    assert (
        '<p class="note accept"><strong>ACCEPT</strong> Faster.</p>\n'
        '<details class="code"><summary>Show the code that made this section</summary>'
        '<pre tabindex="0"><code>verdict(study)</code></pre></details>\n<nav'
    ) in html
    assert html.index("two</p>") < html.index("first()\n\nsecond()</code>")


def test_a_section_with_nothing_to_say_is_one_line():
    html = page(
        new_markdown_cell("# T"),
        new_markdown_cell("## Claims\n\nWhat the mail says, beside what was found."),
        cell(Note("empty", "No claim is recorded.")),
        new_markdown_cell("And again."),
        cell(Note("empty", "Nothing again.")),
    )
    assert "What the mail says" not in html
    assert "again" not in html.partition("<details")[0]
    assert 'Claims</h2>\n<p class="note empty">No claim is recorded.</p>' in html


def test_words_before_nothing_are_left_out_with_it():
    html = page(
        new_markdown_cell("## Why\n\nProfiles say it."),
        cell(TABLE),
        new_markdown_cell("And inside the runs."),
        cell(Note("empty", "No tool printed intervals.")),
    )
    assert "Profiles say it." in html
    assert "inside the runs" not in html
    assert "No tool printed" not in html


def test_a_section_that_begins_with_nothing_keeps_that_line_only():
    html = page(
        new_markdown_cell("## Why\n\nProfiles say it."),
        cell(Note("empty", "No profile.")),
        new_markdown_cell("Every counter."),
        cell(TABLE),
    )
    assert "Profiles say it." not in html
    assert 'Why</h2>\n<p class="note empty">No profile.</p>' in html
    assert "Every counter." in html


def test_changes_and_guards_are_read_back_and_drawn():
    change = Interval(
        mood="good", what="Throughput", where="tcp on a", values="20 to 21 Mbit/s",
        change="+5 % [+4, +6]", verdict="better", runs="9 runs each",
        places=(10, 50, 60, 70, 5, 15, 2, 20),
    )  # fmt: skip
    mark = Mark(mood="bad", name="loss", word="worse", detail="+9 pp", target="#guards")
    shown = (
        Intervals(items=(change,), caption="Dot and line."),
        Marks(title="Guards:", items=(mark,)),
    )
    html = page(*map(cell, shown))
    assert parts("".join(intervals_to_html(one) for one in shown[:1])) == shown[:1]
    assert '<span class="values">20 to 21 Mbit/s</span>' in html
    assert parts(marks_to_html(shown[1])) == shown[1:]
    assert '<a class="name" href="#guards">loss</a>' in html
    assert '<line class="range" x1="50%" x2="70%"' in html
    assert [f'x1="{at}%" x2="{at}%" y1="2"' in html for at in (2, 20)] == [True, True]


def test_a_change_without_a_place_is_words_alone():
    change = Interval(
        mood="open", what="Throughput", where="tcp on a", values="0.05 to 12.54 Mbit/s",
        change="no change computed", verdict="not assessable", runs="1 run each",
        places=None,
    )  # fmt: skip
    shown = Intervals(items=(change,), caption="Values.")
    html = intervals_to_html(shown)
    assert "<svg" not in html
    assert parts(html) == (shown,)


def test_streams_and_errors_are_shown():
    error = new_output(
        "error", ename="E", evalue="b", traceback=["\x1b[31mE\x1b[0m: <b>"]
    )
    html = page(printing("a <\n", "stderr"), new_code_cell("e", outputs=[error]))
    assert '<pre class="stderr">a &lt;\n</pre>' in html
    assert '<pre class="error" role="alert">E: &lt;b&gt;</pre>' in html


def test_an_output_that_cannot_be_shown_is_named():
    output = new_output("display_data", {"application/x-widget": "1"})
    html = page(new_code_cell("w", outputs=[output]))
    assert "(not shown here: application/x-widget)" in html


def test_a_markdown_table_has_header_scopes():
    html = page(new_markdown_cell("| a | b |\n|---|--:|\n| x | 1 |"))
    assert '<th scope="col" class="right">b</th>' in html
    assert '<td class="right">1</td>' in html
