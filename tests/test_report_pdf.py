"""The PDF: text stays text, nothing runs out of the page, the same every time."""

import re
import shutil
import subprocess
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from patchstudy.errors import StudyError
from patchstudy.report import columns, pdf
from patchstudy.report.pdf import to_pdf, to_typst
from patchstudy.report.table import Column, Note, Table, Vector

SVG = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="60">'
    b'<rect width="40" height="40"/></svg>'
)
LAWS = settings(deadline=None, derandomize=True, max_examples=60)
ATTACKS = [
    '#read("/etc/passwd")',
    '"); #panic("out") #("',
    '#import "x.typ": * // c /* d */',
    "$x^2$ *b* _i_ `r` \\ ~ @cite <label> = - + / [x] ] } )",
    "<script>alert(1)</script>",
    "RTL \u202e mark \x00 \x1b[31m 中 \ud800",
]


def cell(shown, source="show()"):
    bundle = shown._repr_mimebundle_()
    data, about = bundle if isinstance(bundle, tuple) else (bundle, {})
    output = new_output("execute_result", data, metadata=about, execution_count=1)
    return new_code_cell(source, outputs=[output], execution_count=1)


def printing(text):
    return new_code_cell("p", outputs=[new_output("stream", name="stdout", text=text)])


def source(*cells, title="T", subtitle=""):
    return to_typst(new_notebook(cells=list(cells)), title=title, subtitle=subtitle)[0]


def made(*cells, title="T", subtitle=""):
    return to_pdf(new_notebook(cells=list(cells)), title=title, subtitle=subtitle)


def everywhere(text):
    """Cells with the text in every place that text can come from."""
    outputs = [
        new_output("display_data", {mime: text})
        for mime in ("text/html", "text/plain", "text/markdown")
    ]
    error = new_output("error", ename=text, evalue=text, traceback=[text])
    return [
        new_markdown_cell(f"# {text}\n\n{text}\n\n- {text}\n\n`{text}`\n\n    {text}"),
        new_markdown_cell(f"> {text}\n\n| a |\n|---|\n| {text.replace('|', '')} |"),
        cell(Table((Column(text),), ((text,),), text)),
        cell(Note("caveat", text)),
        cell(Vector(SVG, text, text)),
        printing(text),
        new_code_cell("x", outputs=[*outputs, error]),
    ]


def words(document, tmp_path):
    """Text of a PDF, with blanks joined."""
    if not shutil.which("pdftotext"):
        pytest.skip("no pdftotext on this machine")
    path = tmp_path / "report.pdf"
    path.write_bytes(document)
    run = subprocess.run(
        ["pdftotext", "-layout", path, "-"], capture_output=True, check=True
    )
    return " ".join(run.stdout.decode().replace("\u200b", "").split())


@pytest.mark.parametrize("attack", ATTACKS)
def test_text_from_files_is_text_in_the_pdf(attack, monkeypatch):
    standards = []
    compile_ = pdf._compile

    def spy(main, standard):
        standards.append(standard)
        return compile_(main, standard)

    monkeypatch.setattr(pdf, "_compile", spy)
    made(*everywhere(attack), title=attack, subtitle=attack)
    assert standards == [["ua-1"]]


@pytest.mark.parametrize("attack", ATTACKS[:3])
def test_the_words_of_an_attack_can_be_read(attack, tmp_path):
    read = words(made(cell(Note("text", attack)), printing(attack)), tmp_path)
    assert read.count(attack) == 2


@LAWS
@given(st.text())
def test_every_text_stands_in_a_string(text):
    typst = source(*everywhere(text), title=text, subtitle=text)
    bare = re.sub(r'"(\\.|[^"\\])*"', "", typst)
    assert not re.search(r"[^\sa-z0-9#\[\](),:.%+\-]", bare)


def test_control_characters_and_missing_letters_are_shown_as_escapes(tmp_path):
    read = words(made(cell(Note("text", "a\u202eb\x00c中d&#8238;"))), tmp_path)
    assert r"a\u202eb\x00c\u4e2dd&#8238;" in read


def test_an_entity_cannot_bring_a_control_character_back():
    assert r'"a"' not in source(new_markdown_cell("a&#8238;b"))
    assert r"\\u202e" in source(new_markdown_cell("a&#8238;b"))


def test_equal_notebooks_give_equal_bytes():
    cells = [
        new_markdown_cell("# a"),
        cell(Vector(SVG, "a", "b")),
        cell(Note("veto", "c")),
    ]
    assert made(*cells) == made(*cells)


def test_title_subtitle_and_page_numbers_are_there(tmp_path):
    document = made(
        printing("x\n" * 150), title="qmi_wwan: headroom", subtitle="2 devices"
    )
    read = words(document, tmp_path)
    assert read.startswith("qmi_wwan: headroom 2 devices")
    assert read.count("qmi_wwan: headroom") == 3
    assert read.endswith("3/3")


def test_code_is_left_out(tmp_path):
    read = words(
        made(cell(Note("accept", "Accept."), source="secret_call()")), tmp_path
    )
    assert read == "T Accept. 1/1"


def test_a_heading_that_repeats_the_title_is_left_out():
    typst = source(new_markdown_cell("# snd_buf: *why*\n\n## A"), title="snd_buf: why")
    assert re.findall(r"#heading\(level: (\d)\)", typst) == ["1"]


def test_heading_levels_have_no_gaps():
    typst = source(new_markdown_cell("# a\n\n### b\n\n### c\n\n## d\n\n# e"))
    assert re.findall(r"#heading\(level: (\d)\)", typst) == ["1", "2", "2", "2", "1"]


def test_a_wide_table_stays_on_the_page(tmp_path):
    columns = tuple(Column(f"Column number {at}") for at in range(9))
    row = ("profile_share:pskb_expand_head", "0123456789abcdef" * 4, "a few words") * 3
    document = made(cell(Table(columns, (row, row), "Wide.")))
    (tmp_path / "wide.pdf").write_bytes(document)
    read = subprocess.run(
        ["pdftotext", "-bbox", tmp_path / "wide.pdf", "-"],
        capture_output=True,
        check=True,
    )
    ends = [float(end) for end in re.findall(rb'xMax="([\d.]+)"', read.stdout)]
    assert max(ends) < 595.3 - 45  # A4 without most of its margin


def test_no_number_stands_on_another(tmp_path):
    places = ("tcp-egress80 on qemu-tcg-icount-250mips", "driver's counters, perf runs")
    answers = ("control: worse, at most small, one build each", "not measured at all")
    numbers = (
        "+15.18 % [+14.71, +15.65]", "194,944 to 187,184", "5.062 % [5.057, 5.066]",
        "+5.332 % [+5.327, +5.337]",
    )  # fmt: skip
    columns = (
        *(Column(name) for name in ("Where", "From")),
        *(Column("Number", "right") for _ in numbers),
        *(Column(name) for name in ("Answer", "Rate")),
    )
    table = Table(columns, ((*places, *numbers, *answers),), "C.")
    document = made(cell(table))
    assert "15.18" in words(document, tmp_path)
    path = tmp_path / "close.pdf"
    path.write_bytes(document)
    command = ["pdftotext", "-bbox", path, "-"]
    told = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    box = r'xMin="([\d.]+)" yMin="([\d.]+)" xMax="([\d.]+)" yMax="([\d.]+)"'
    boxes = [tuple(map(float, one)) for one in re.findall(box, told)]
    assert len(boxes) > 30
    for one, other in combinations(boxes, 2):
        wide = min(one[2], other[2]) - max(one[0], other[0])
        high = min(one[3], other[3]) - max(one[1], other[1])
        assert wide < 1 or high < 2


def test_a_long_table_repeats_its_head_and_splits_no_row(tmp_path):
    rows = tuple((f"run-{number}", "one\u00a0two three") for number in range(120))
    read = words(
        made(cell(Table((Column("Run"), Column("Why")), rows, "C."))), tmp_path
    )
    assert read.count("Run Why") == int(read[-1]) > 1


def test_only_so_many_rows_and_lines_go_on_paper(tmp_path):
    rows = tuple((str(number),) for number in range(250))
    document = made(cell(Table((Column("n"),), rows, "")), printing("x\n" * 250))
    read = words(document, tmp_path)
    assert "50 more rows stand in the HTML report." in read
    assert "(50 more lines)" in read


def points(widths):
    return [float(one.removesuffix("pt")) for one in widths]


@pytest.mark.parametrize(
    ("letters", "size"), [(20, 8.5), (43, 8.5), (46, 8.0), (49, 7.5), (999, 7.5)]
)
def test_letters_shrink_as_a_table_gets_wider(letters, size):
    row = ["a" * letters] * 2
    assert columns.widths(["x", "y"], [row], ["left", "left"])[1] == size


def test_a_table_that_fits_has_the_widths_of_its_words():
    assert (
        columns.widths(["Metric", "n"], [["a b", "1"]], ["left"] * 2)[0] == ["auto"] * 2
    )
    assert columns.widths(["Metric"], [], ["left"])[0] == ["auto"]


def test_names_of_columns_are_broken_before_cells():
    names = ["Metric", *["Change of the rate"] * 5]
    row = ["a" * 20, *["+1.25 %"] * 5]
    widths, size = columns.widths(names, [row], ["left"] * 6)
    assert size == 8.5
    assert points(widths)[0] > 20 * 0.613 * 8.5
    assert sum(points(widths)) < columns.PAGE_PT + 1


def test_long_columns_share_what_short_ones_leave():
    row = ["word " * 8, "a" * 8, "1 " * 15, "word " * 40]
    widths, size = columns.widths(
        ["", "", "", ""], [row], [*["left"] * 2, "right", "left"]
    )
    first, short, numbers, last = points(widths)
    assert size == 7.5
    assert short == pytest.approx(8 * 0.613 * 7.5 + columns.CELL_PT, abs=4)
    assert short < numbers < first < last
    assert first + short + numbers + last == pytest.approx(columns.PAGE_PT, abs=1)


def test_short_columns_are_broken_where_long_ones_would_have_no_room():
    row = [
        "__kmalloc_node_\u200btrack_caller", "qemu-tcg-icount-250mips, tcp-egress80",
        "ftrace_graph, profile runs", "34,122 to 45,995", "0.966 to 0.000239",
        "21.0 us to 2.64 us", "0.126", "16 and 16",
    ]  # fmt: skip
    names = ["Function", "Where", "Counted by", "Calls a run", "A packet",
             "Time of a call", "Ratio", "Runs"]  # fmt: skip
    widths, _ = columns.widths(names, [row], [*["left"] * 3, *["right"] * 5])
    assert points(widths)[1] > 65  # two words of a place stand beside each other
    assert sum(points(widths)) < columns.PAGE_PT + 1


def test_no_column_is_narrower_than_its_longest_word(tmp_path):
    row = ["Throughputs of all", *["tcp " * 90] * 5]
    widths, _ = columns.widths([""] * 6, [row], ["left"] * 6)
    assert points(widths)[0] > 11 * 0.55 * 7.5 + columns.CELL_PT
    name = "Round-trip Throughputs"
    rows = ((name, *["tcp " * 90] * 5),)
    names = tuple(Column(f"c{at}") for at in range(6))
    read = words(made(cell(Table(names, rows, "Six."))), tmp_path)
    assert "Throughputs" in read.split()


def test_links_to_the_web_stay_and_others_become_text():
    typst = source(new_markdown_cell("[a](https://b.c/d) [e](javascript:f) [g](#h)"))
    assert '#link("https://b.c/d")[#"a"]' in typst
    assert typst.count("#link") == 1
    assert '" (javascript:f)"' in typst


def test_a_numbered_list_keeps_its_start_and_nesting():
    typst = source(new_markdown_cell("3. a\n   - b\n4. c"))
    assert "#enum(tight: true, start: 3, " in typst
    assert '#list(tight: true, [#"b"])' in typst


def test_a_damaged_figure_is_an_error_in_one_line():
    with pytest.raises(StudyError, match=r"^the PDF cannot be made: .*SVG") as caught:
        made(cell(Vector(b"<svg", "a", "b")))
    assert "\n" not in str(caught.value)
