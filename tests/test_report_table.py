"""Tables, notes and figures, as a notebook shows them."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchstudy.report.outputs import may_link, parts, picture, preferred
from patchstudy.report.table import (
    Column,
    Note,
    Table,
    Vector,
    note_to_html,
    to_html,
    to_markdown,
    to_text,
    visible,
    visible_lines,
)

TABLE = Table(
    columns=(Column("Device"), Column("Change", "right")),
    rows=(("mt7621", "+46.5 %"), ("ipq4019", "+3.1 %")),
    caption="Throughput by device.",
)
LAWS = settings(deadline=None, derandomize=True, max_examples=60)
HOSTILE = "<script>x</script>\"'&|*`\x00\x1b[31m\u202e"


def with_cell(text):
    return Table((Column("Name"), Column("Bytes", "right")), ((text, "1"),), text)


def test_html_has_caption_scopes_and_class_names():
    assert to_html(TABLE) == (
        "<table>\n<caption>Throughput by device.</caption>\n"
        '<thead>\n<tr><th scope="col" class="left">Device</th>'
        '<th scope="col" class="right">Change</th></tr>\n</thead>\n<tbody>\n'
        '<tr><th scope="row" class="left">mt7621</th>'
        '<td class="right">+46.5 %</td></tr>\n'
        '<tr><th scope="row" class="left">ipq4019</th>'
        '<td class="right">+3.1 %</td></tr>\n</tbody>\n</table>'
    )


def test_text_is_aligned():
    assert to_text(TABLE).splitlines() == [
        "Throughput by device.",
        "",
        "Device    Change",
        "-------  -------",
        "mt7621   +46.5 %",
        "ipq4019   +3.1 %",
    ]


def test_text_counts_the_columns_that_a_terminal_uses():
    lines = to_text(with_cell("中e\u0301")).splitlines()
    assert lines[-1] == "中e\u0301       1"
    assert lines[-2] == "----  -----"


def test_markdown_escapes_pipes_and_markup():
    table = Table((Column("a"), Column("b", "right")), (("x|y", "<b>*1*"),), "c_d")
    assert to_markdown(table).splitlines() == [
        r"c\_d",
        "",
        "| a | b |",
        "| :--- | ---: |",
        r"| x\|y | \<b\>\*1\* |",
    ]


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"has 1 cells; the table has 2 columns"):
        Table((Column("a"), Column("b")), (("1",),), "")


def test_columns_without_a_word_can_be_left_out():
    columns = tuple(map(Column, ("Name", "Value", "Note")))
    table = Table(columns, (("a", "-", "-"), ("-", "-", "1")), "x").without_blanks()
    assert [one.name for one in table.columns] == ["Name", "Note"]
    assert table.rows == (("a", "-"), ("-", "1"))


def test_a_kind_is_a_word():
    with pytest.raises(ValueError, match=r"kind 'accept \(below' is not a lower-case"):
        Note("accept (below", "Accept")


def test_a_table_without_columns_or_rows_can_be_shown():
    assert "<caption>none</caption>" in to_html(Table((), (), "none"))
    assert to_text(Table((Column("a"),), (), "none")).endswith("\n\na\n-")


def test_markup_in_cells_stays_text_and_control_characters_are_seen():
    html = to_html(with_cell(HOSTILE))
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert r"\x00\x1b[31m\u202e" in html
    assert r"\x00\x1b[31m\u202e" in to_text(with_cell(HOSTILE))


@pytest.mark.parametrize("write", [to_html, to_markdown, to_text])
@LAWS
@given(text=st.text())
def test_no_format_lets_a_control_character_through(write, text):
    written = write(with_cell(text)).replace("\n", "")
    assert visible(written) == written


def test_fixed_spaces_are_kept():
    assert visible("300\u00a0Mbit/s\u202f!") == "300\u00a0Mbit/s\u202f!"


def test_colours_of_a_terminal_are_dropped_from_lines():
    assert visible_lines("a\x1b[31mred\x1b[0m\r\n\tb\x07") == "ared\n    b\\x07"


def test_a_cell_that_ends_in_a_table_shows_it():
    bundle = TABLE._repr_mimebundle_()
    assert bundle["text/plain"] == to_text(TABLE)
    plain = bundle["text/html"].replace('style="text-align:left" ', "")
    assert plain == to_html(TABLE)


def test_a_notebook_shows_words_on_the_left():
    html = TABLE._repr_mimebundle_()["text/html"]
    assert '<th scope="row" style="text-align:left" class="left">mt7621</th>' in html
    assert '<td class="right">+46.5 %</td>' in html


def test_a_note_is_escaped_in_html_and_readable_as_text():
    bundle = Note("veto", "loss > 3 %\x00")._repr_mimebundle_()
    assert bundle["text/html"] == r'<p class="note veto">loss &gt; 3 %\x00</p>'
    assert bundle["text/plain"] == r"loss > 3 %\x00"


def test_a_figure_brings_its_description_along():
    data, about = Vector(b"<svg/>", "dots", "Each dot is a run.")._repr_mimebundle_()
    assert data == {"image/svg+xml": "<svg/>", "text/plain": "dots"}
    assert about["image/svg+xml"] == {"alt": "dots", "caption": "Each dot is a run."}


cells = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1)


@LAWS
@given(
    rows=st.lists(st.tuples(cells, cells), max_size=4),
    aligns=st.tuples(*[st.sampled_from(["left", "right"])] * 2),
)
def test_a_table_is_read_back_as_it_was(rows, aligns):
    columns = tuple(map(Column, ("a", "b"), aligns))
    table = Table(columns, tuple(rows), "caption")
    assert parts(to_html(table)) == (table,)


def test_notes_and_tables_are_read_in_order():
    note = Note("accept", "Accept: it is faster")
    html = f"loose {note_to_html(note)}<div>{to_html(TABLE)}</div><script>x()</script>"
    assert parts(html) == (Note("text", "loose"), note, TABLE)


def test_a_data_frame_is_read_with_its_index_and_numbers_to_the_right():
    frame = pd.DataFrame({"n": [1, 2], "who": ["a", "<b>"]})
    (table,) = parts(frame.to_html())
    assert [column.align for column in table.columns] == ["right", "right", "left"]
    assert table.rows == (("0", "1", "a"), ("1", "2", "<b>"))


def test_cells_over_several_rows_leave_empty_cells():
    index = pd.MultiIndex.from_tuples([("x", 1), ("x", 2)], names=["k", "i"])
    (table,) = parts(pd.DataFrame({"v": [5, 6]}, index=index).to_html())
    assert [column.name for column in table.columns] == ["k", "i", "v"]
    assert table.rows == (("x", "1", "5"), ("", "2", "6"))


@pytest.mark.parametrize(
    "html",
    [
        pytest.param("<div>" * 3000 + "deep", id="nested without end"),
        pytest.param("report.html", id="looks like a file name"),
        pytest.param("<?xml version='1.0'?><a>deep</a>", id="looks like XML"),
        pytest.param("<td colspan=999999999999>deep", id="a cell without a table"),
    ],
)
def test_odd_markup_is_read_as_text(html):
    (note,) = parts(html)
    assert note in {Note("text", "deep"), Note("text", "report.html")}


@pytest.mark.parametrize("span", ["999999999", "-1", "²", "x"])
def test_an_absurd_span_is_bounded(span):
    (table,) = parts(f"<table><tr><td colspan='{span}' rowspan='{span}'>a</table>")
    assert 1 <= len(table.columns) <= 100


def test_a_picture_is_preferred_to_its_text():
    output = {"data": {"text/plain": "<Figure>", "image/png": "iVBO"}}
    assert preferred(output["data"]) == "image/png"
    assert picture(output, "image/png").alt == "Figure without a description"
    assert preferred({"application/x": "1"}) == ""


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://lore.kernel.org/x", True),
        ("mailto:a@b.c", True),
        ("report.json", True),
        ("#results", True),
        ("a/b:c", True),
        ("javascript:alert(1)", False),
        ("JaVaScRiPt:alert(1)", False),
        ("java%0Ascript%3Aalert(1)", False),
        ("data:text/html,x", False),
        ("file:///etc/passwd", False),
    ],
)
def test_only_links_to_web_mail_and_nearby_stay(url, allowed):
    assert may_link(url) is allowed
