"""Two call trees become one, and one picture in which names are text."""

import re
from xml.etree import ElementTree as ET

import pytest

from patchstudy import figures
from patchstudy.flames import flames
from patchstudy.report.svg import inline
from patchstudy.study import open_study

DESIGN = """\
question = "Is it faster?"
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
"""
NAME = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def tree(write_study):
    def of(baseline, patched):
        files = {
            "d/baseline/boot-1/run-1/t.x.csv": "metric,unit,value\nthroughput,bit/s,1\n"
        }
        for variant, text in (("baseline", baseline), ("patched", patched)):
            files[f"d/{variant}/boot-9/profile-1/t.folded.txt"] = text
        return flames(open_study(write_study(DESIGN, (), files)))

    return of


def test_a_frame_is_as_wide_as_the_mean_of_its_shares(tree):
    table = tree("m;copy 40\nm;send 60\n", "m;send 100\nm;x 0\n").set_index("symbol")
    assert table.loc["m", "width"] == pytest.approx(1)
    assert table.loc["copy", "width"] == pytest.approx(0.2)
    assert table.loc["copy", "change"] == pytest.approx(-0.4)
    assert table.loc["send", "start"] == pytest.approx(0.2)


def test_what_a_frame_calls_lies_within_it(tree):
    table = tree("m;a;b 3\nm;a;c 2\nm;d 5\n", "m;a;c 6\nm;d;e 4\n")
    for _, row in table.iterrows():
        inside = table[
            (table["depth"] == row["depth"] + 1)
            & (table["start"] >= row["start"] - 1e-9)
            & (table["start"] < row["start"] + row["width"] - 1e-9)
        ]
        assert inside["width"].sum() <= row["width"] + 1e-9


def test_frames_without_a_symbol_are_drawn_once(tree):
    table = tree("m;[unknown];[unknown];[unknown];f 1\nm;g 1\n", "m;f 1\nm;g 1\n")
    assert (table["symbol"] == "[unknown]").sum() == 1


def test_the_same_stacks_make_the_same_bytes(tree):
    table = tree("m;copy 40\nm;send 60\n", "m;send 100\nm;x 0\n")
    assert figures.flame(table) == figures.flame(table)


def test_every_name_is_text_with_a_tooltip(tree):
    table = tree("m;<b>x</b>&y 40\nm;send 60\n", "m;send 100\nm;x 0\n")
    svg = ET.fromstring(figures.flame(table))
    words = [one.text for one in svg.iter(f"{NAME}text")]
    assert "\u221240.0 <b>x</b>&y" in words
    titles = [one.text for one in svg.iter(f"{NAME}title")]
    assert any(one.endswith("change \u221240.0 points") for one in titles)
    assert len(titles) == len(table)


def test_less_and_more_differ_without_colour(tree):
    table = tree("m;copy 40\nm;send 60\n", "m;send 60\nm;wait 40\n")
    text = figures.flame(table).decode()
    assert text.count("stroke-dasharray") == 2  # the key and what rose
    assert "+40.0 wait" in text


def test_an_empty_table_is_refused(tree):
    table = tree("m;copy 40\nm;send 60\n", "m;send 60\nm;wait 40\n")
    with pytest.raises(ValueError, match="nothing to draw"):
        figures.flame(table.head(0))


def test_the_picture_stands_in_the_page(tree):
    table = tree("m;<i>&copy 40\nm;send 60\n", "m;send 60\nm;wait 40\n")
    made = inline(figures.flame(table), alt='a "flame" <graph>')
    assert made.startswith('<svg class="flame" role="img" aria-label="a &quot;flame')
    assert "&lt;i&gt;&amp;copy" in made
    assert len(re.findall("<rect", made)) == figures.flame(table).count(b"<rect")


@pytest.mark.parametrize(
    "svg",
    [
        pytest.param(b'<svg xmlns="http://www.w3.org/2000/svg"/>', id="another"),
        pytest.param(b"<!DOCTYPE svg><svg/>", id="a document type"),
        pytest.param(b"<svg", id="damaged"),
        pytest.param(b'<html class="flame"/>', id="no picture"),
    ],
)
def test_any_other_picture_stays_an_image(svg):
    assert inline(svg, alt="") is None


def test_what_could_act_does_not_come_through():
    svg = (
        b'<svg xmlns="http://www.w3.org/2000/svg" class="flame" onload="x()" '
        b'style="fill:url(http://e)"><script>x()</script><a href="http://e">'
        b'<text>t</text></a><rect x="1" fill="url(#e)" onclick="x()" '
        b'width="9&quot; onload=&quot;x"/><text fill="#aabbcc">ok</text>'
        b"<foreignObject><p>q</p></foreignObject></svg>"
    )
    made = inline(svg, alt="")
    assert made == (
        '<svg class="flame" role="img" aria-label=""><rect x="1"></rect>'
        '<text fill="#aabbcc">ok</text></svg>'
    )
