"""A new study: what ``patchstudy new`` writes, and what it refuses."""

import tomllib

import pytest

from patchstudy.cli import main
from patchstudy.report import files
from patchstudy.study import read_design

MAIL = """\
From: A Person <a@example.org>
Subject: [PATCH net-next] made_up: leave "room" \\ <b>

Throughput went from 200 to 300 Mbit/s. It took 3 weeks.

Link: https://example.org/1
Signed-off-by: A Person <a@example.org>
---
--- a/drivers/net/usb/made_up.c
+++ b/drivers/net/usb/made_up.c
@@ -1 +1 @@
-a
+b
"""
TREE = {
    "Kconfig": "",
    "MAINTAINERS": (
        "head\n\nMADE UP DRIVER\nM:\tA Person <a@example.org>\nL:\tnetdev@x.org\n"
        "F:\tdrivers/net/usb/made_up*\n\nUSB NETWORKING\nL:\tusb@x.org (moderated)\n"
        "F:\tdrivers/net/usb/\nX:\tdrivers/net/usb/other.c\n\nTHE REST\nF:\t*\nF:\t*/\n"
        "\nBY NAME\nN:\tmade_[u]p\n\nBROKEN\nN:\t(((\n"
    ),
    "drivers/net/usb/Makefile": (
        "obj-$(CONFIG_USB_MADE_UP) += made.o\nmade-y := main.o \\\n\tmade_up.o\n"
        "obj-${CONFIG_OTHER}\t+= other.o # one\n"
    ),
    "drivers/net/usb/Kconfig": (
        'config USB_MADE_UP\n\ttristate "Made up adapter"\n\tdepends on NET\n\n'
        'config OTHER\n\tbool "Other"\n'
    ),
}


@pytest.fixture
def begun(tmp_path, capsys):
    """Return a function that runs ``patchstudy new`` and gives status and words."""

    def run(name="usb/made_up", mail=MAIL, *, tree=False):
        arguments = ["new", name, "--data", str(tmp_path / "data")]
        if mail is not None:
            (tmp_path / "mail").write_text(mail, encoding="utf-8")
            arguments += ["--patch-file", str(tmp_path / "mail")]
        if tree:
            for path, text in TREE.items():
                (tmp_path / "linux" / path).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / "linux" / path).write_text(text, encoding="utf-8")
            arguments += ["--kernel", str(tmp_path / "linux")]
        status = main(arguments)
        told = capsys.readouterr()
        return status, told.out + told.err, tmp_path / "data" / name

    return run


def test_a_study_is_filled_from_the_mail_and_names_nobody(begun):
    status, words, folder = begun()
    assert status == 0
    assert "(1 claims to confirm, 1 lines with numbers left as comments)" in words
    text = (folder / "study.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    assert table["title"] == 'made_up: leave "room" \\ <b>'
    assert table["claims"] == [
        {
            "text": "Throughput went from 200 to 300 Mbit/s.",
            "metric": "throughput",
            "change": "200 Mbit/s -> 300 Mbit/s",
        }
    ]
    assert "#   It took 3 weeks." in text
    assert "# Patch: driver made_up, subsystem usb, tree net-next" in text
    assert "# https://example.org/1" in text
    assert "Person" not in text + words
    assert "@" not in text
    assert (folder / "patch.mbox").read_text(encoding="utf-8") == MAIL


def test_a_new_study_is_checked_and_says_what_is_next(begun, capsys):
    _, _, folder = begun()
    assert main(["check", str(folder)]) == 1
    told = capsys.readouterr().out
    assert "no runs yet: nothing can be compared" in told
    assert "patchstudy plan" in told
    assert "+50.0 % [+49.4, +50.6] of the baseline" in told


def test_without_a_mail_the_study_is_a_commented_form(begun):
    status, _, folder = begun(mail=None)
    assert status == 0
    design = read_design(folder)
    assert design.question == "What does usb/made_up change?"
    assert [one.metric.name for one in design.metrics] == ["throughput"]
    assert not (folder / "patch.mbox").exists()


def test_what_is_there_is_not_overwritten(begun):
    _, _, folder = begun()
    (folder / "study.toml").write_text("mine", encoding="utf-8")
    status, words, _ = begun()
    assert status == 2
    assert "is there already" in words
    assert (folder / "study.toml").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    "name", ["x", "a/b/c", "../x", "a/..", "/etc/x", "a/", ".a/b", "a/b c", "a/\x1b"]
)
def test_a_name_that_is_no_driver_and_patch_is_refused(begun, name):
    status, words, _ = begun(name, mail=None)
    assert status == 2
    assert "is no name of a study; give driver/patch" in words


def test_a_mail_that_cannot_be_read_leaves_no_folder(begun):
    status, words, folder = begun(mail=MAIL.replace("@@ -1 +1", "@@ -1,9 +1"))
    assert status == 2
    assert "the diff is broken" in words
    assert not folder.exists()


def test_a_kernel_tree_names_module_prompt_sections_and_lists(begun):
    status, _, folder = begun(tree=True)
    text = (folder / "study.toml").read_text(encoding="utf-8")
    assert status == 0
    assert "# Module made: USB_MADE_UP, 'Made up adapter'." in text
    names = [line for line in text.splitlines() if line.startswith("# MAINTAINERS: ")]
    assert names == [
        "# MAINTAINERS: MADE UP DRIVER (netdev@x.org)",
        "# MAINTAINERS: USB NETWORKING (usb@x.org)",
        "# MAINTAINERS: THE REST",
        "# MAINTAINERS: BY NAME",
    ]
    assert "Person" not in text


def test_a_folder_that_is_no_kernel_tree_is_refused(tmp_path, begun, capsys):
    (tmp_path / "mail").write_text(MAIL, encoding="utf-8")
    arguments = ["new", "a/b", "--data", str(tmp_path / "d"), "--kernel", str(tmp_path)]
    assert main([*arguments, "--patch-file", str(tmp_path / "mail")]) == 2
    assert "no kernel tree" in capsys.readouterr().err


def test_every_shared_shape_begins_a_study(shared, tmp_path, capsys):
    for path in sorted((shared / "patches").glob("[0-9]*")):
        name = f"shape/p{path.name[:2]}"
        arguments = ["new", name, "--data", str(tmp_path), "--patch-file", str(path)]
        assert main(arguments) == 0, path.name
        assert "@" not in (tmp_path / name / "study.toml").read_text(encoding="utf-8")
        assert main(["check", str(tmp_path / name)]) == 1, path.name
    capsys.readouterr()


def test_the_version_and_the_exit_status_are_told(capsys):
    for argument, words in (("--version", "patchstudy "), ("--help", "exit status: 0")):
        with pytest.raises(SystemExit) as stopped:
            main([argument])
        assert stopped.value.code == 0
        assert words in capsys.readouterr().out


@pytest.mark.parametrize("left", [(), (".0123456789ab.new/study.toml",)])
def test_what_a_stopped_program_left_is_in_nobodys_way(begun, tmp_path, left):
    folder = tmp_path / "data" / "usb" / "made_up"
    folder.mkdir(parents=True)
    for name in left:
        (folder / name).parent.mkdir()
        (folder / name).write_text("half")
    status, _, folder = begun()
    assert status == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["patch.mbox", "study.toml"]


def test_a_study_that_was_all_but_there_is_finished_and_not_written_again(
    begun, tmp_path
):
    switch = tmp_path / "data" / "usb" / "made_up" / ".switch"
    switch.mkdir(parents=True)
    (switch / "+study.toml").write_text("mine")
    status, told, folder = begun()
    assert status == 2
    assert "is there already" in told
    assert (folder / "study.toml").read_text() == "mine"
    assert [path.name for path in folder.iterdir()] == ["study.toml"]


@pytest.mark.parametrize("name", ["notes.txt", ".hidden"])
def test_a_folder_with_anything_of_a_person_is_left_alone(begun, tmp_path, name):
    folder = tmp_path / "data" / "usb" / "made_up"
    folder.mkdir(parents=True)
    (folder / name).write_text("mine")
    status, told, _ = begun()
    assert (status, "is there already" in told) == (2, True)
    assert [path.name for path in folder.iterdir()] == [name]


def test_a_program_that_is_stopped_leaves_no_half_written_study(begun, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "_commit", stopped)
    status, _, folder = begun()
    assert (status, list(folder.iterdir())) == (130, [])
    monkeypatch.undo()
    assert begun()[0] == 0
