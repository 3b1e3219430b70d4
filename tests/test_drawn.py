"""Figures by name: each usable alone, as a file of any kind, the same every time."""

import pytest

from patchstudy.cli import main
from patchstudy.errors import StudyError
from patchstudy.report import drawn

BEGINS = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}


def test_every_figure_that_people_ask_for_is_there(assessed):
    found = drawn.named(assessed("qmi_wwan/qmap-headroom"))
    wanted = {
        "forest", "profile", "runs:throughput", "ecdf:throughput", "cpu:throughput",
        "interaction:throughput", "course:throughput:iperf3",
    }  # fmt: skip
    assert wanted <= set(found)
    assert all(one.words for one in found.values())


def test_a_figure_without_data_is_not_offered(assessed):
    found = drawn.named(assessed("qmi_wwan/tx-skb-orphan"))
    assert not [name for name in found if name.startswith("interaction")]
    assert "runs:loss" in found


@pytest.mark.parametrize("ending", BEGINS)
def test_a_figure_becomes_a_file_twice_the_same(ending, assessed, tmp_path):
    paths = [tmp_path / f"{name}{ending}" for name in ("one", "two")]
    for path in paths:
        drawn.write(assessed("qmi_wwan/tx-skb-orphan"), "runs:throughput", path)
    first, second = (path.read_bytes() for path in paths)
    assert first.startswith(BEGINS[ending])
    assert first == second


@pytest.mark.parametrize("name", ["interaction:throughput", "cpu:throughput"])
def test_the_new_figures_can_be_drawn(name, assessed, tmp_path):
    path = tmp_path / "one.svg"
    drawn.write(assessed("qmi_wwan/qmap-headroom"), name, path)
    assert path.stat().st_size > 5000


def test_a_wrong_name_tells_the_right_ones(assessed, tmp_path):
    with pytest.raises(StudyError, match=r"no figure 'run' of .*is forest, runs"):
        drawn.write(assessed("qmi_wwan/tx-skb-orphan"), "run", tmp_path / "x.svg")


def test_a_wrong_ending_tells_the_right_ones(assessed, tmp_path):
    with pytest.raises(StudyError, match=r"x\.gif: name it with one of \.svg, \.png"):
        drawn.write(assessed("qmi_wwan/tx-skb-orphan"), "forest", tmp_path / "x.gif")


def test_the_command_lists_and_draws(made, tmp_path, capsys):
    folder = str(made())
    assert main(["figure", folder, "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "forest", "runs:throughput", "ecdf:throughput",
    ]  # fmt: skip
    target = tmp_path / "forest.svg"
    assert main(["figure", folder, "forest", "-o", str(target)]) == 0
    assert target.read_bytes().startswith(b"<?xml")
    assert main(["figure", folder]) == 2
    assert "give the figure's name and -o FILE, or --list" in capsys.readouterr().err


def test_the_load_of_a_run_is_that_of_its_busiest_cpu(assessed):
    assessment = assessed("qmi_wwan/qmap-headroom")
    units = assessment.material.units
    table = drawn.with_load(assessment, units[units["metric"] == "throughput"])
    assert len(table) == 2 * (16 + 18 + 22)
    assert table["load"].between(0.5, 1.0).all()
