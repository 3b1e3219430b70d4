"""A study folder becomes a design and runs; whatever is not used is listed."""

import json
import os

import pytest

from patchstudy.blocks import large
from patchstudy.cli import main
from patchstudy.errors import StudyError, printable
from patchstudy.metrics import Scale, metric
from patchstudy.study import of_files, open_study, parse_margin
from patchstudy.tables import per_run

METRIC = '[[metrics]]\nname = "throughput"\nrole = "primary"\n'
TOP = 'question = "Is it faster?"\nunit = "run"\n'
DESIGN = TOP + METRIC
RATE = "metric,unit,value\nthroughput,Mbit/s,100\n"
RUN = "d/baseline/boot-1/run-1/"
STACKS = "main;work 3\nmain;wait 1\n"


def mistakes(write_study, design):
    with pytest.raises(StudyError) as caught:
        open_study(write_study(design))
    return str(caught.value)


def opened(write_study, files, design=DESIGN, rows=()):
    return open_study(write_study(design, rows, files))


def left(study):
    return {one.path: one.reason for one in study.leftovers}


def pair(path, before, after):
    """Return two snapshots of nstat."""
    return {
        path.format(when): json.dumps({"kernel": {"IpInReceives": count}})
        for when, count in (("before", before), ("after", after))
    }


# ---- study.toml ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("design", "words"),
    [
        (METRIC + 'unit = "run"', "metrics[1].unit: unknown key"),
        (METRIC, "question: is missing"),
        (METRIC, "unit: is missing"),
        ('questoin = "x"\n' + DESIGN, "questoin: unknown key; did you mean 'question'"),
        ("zebra = 1\n" + DESIGN, "zebra: unknown key; known keys: alpha, base2"),
        ('question = 3\nunit = "run"\n' + METRIC, "question: must be a text in quotes"),
        ('question = ""\nunit = "day"\n' + METRIC, "unit: must be one of 'build', 'b"),
        (TOP + "unit = 1\n" + METRIC, "not TOML"),
        ("patched = 'x'\n" + DESIGN, "patched: must be a list of texts, is 'x'"),
        ("patched = []\n" + DESIGN, "patched: names no variant"),
        ("patched = ['a', 'a']\n" + DESIGN, "patched: names a variant twice"),
        ("placebo = 'patched'\n" + DESIGN, "placebo: 'patched' is the first of"),
        ("base2 = 'patched'\n" + DESIGN, "base2: 'patched' is the first of patched"),
        ("placebo = 'a'\nbase2 = 'a'\n" + DESIGN, "base2: 'a' is the placebo too"),
        ("placebo = 'baseline'\n" + DESIGN, "'baseline' is the baseline too"),
        ("patched = ['baseline']\n" + DESIGN, "patched: 'baseline' is the baseline to"),
        ("alpha = 5\n" + DESIGN, "alpha: must lie between 0 and 1, is 5"),
        ("alpha = nan\n" + DESIGN, "alpha: must lie between 0 and 1, is nan"),
        ("alpha = true\n" + DESIGN, "alpha: must be a number, is True"),
        ("block = 'run'\n" + DESIGN, "block: 'run' is the unit"),
        ("layout = '{variant}'\n" + DESIGN, "layout: has no {device}"),
        ("layout = '{device}/{variant}/{run}-{run}'\n" + DESIGN, "a factor twice"),
        ("layout = '{device}/{variant}/{a b}'\n" + DESIGN, "layout: {a b} is no name"),
        (TOP, "metrics: none has role = 'primary'"),
        (TOP + METRIC + METRIC, "metrics: 'throughput' is declared twice"),
        (TOP + "metrics = 3\n", "metrics: must be a list of tables [[metrics]], is 3"),
        (DESIGN + "marign = '1 %'", "metrics[1].marign: unknown key; did you mean 'm"),
        (DESIGN + "required = 'no'", "metrics[1].required: must be true or false"),
        (DESIGN + "workload = 3", "metrics[1].workload: must be a list of texts, is 3"),
        (DESIGN + "where = 'x'", "metrics[1].where: must be a table [where], is 'x'"),
        (DESIGN + "where = {cpu = 1}", "metrics[1].where.cpu: must be a text"),
        (DESIGN + "margin = '1 us'", "margin: '1 us' does not fit throughput"),
        (DESIGN + "margin = '0 %'", "margin: '0 %' is no margin; write it as '1 %'"),
        (DESIGN + "margin = '-1 %'", "margin: '-1 %' is no margin"),
        (DESIGN + "margin = '15'", "margin: '15' is no margin"),
        (DESIGN + "margin = 15", "margin: must be a text in quotes, is 15"),
        (DESIGN + "margin = '1 parsec'", "margin: unknown unit 'parsec'"),
        (DESIGN + "ceiling = '1 us'", "ceiling: '1 us' does not fit the unit 'bit/s'"),
        (DESIGN + "ceiling = 'fast'", "ceiling: 'fast' is no value with a unit"),
        (DESIGN + "expect = 'faster'", "expect: must be one of 'lower', 'higher', 's"),
        (TOP + "[[metrics]]\nname = 'throughput'\n", "metrics[1].role: is missing"),
        (TOP + "[[metrics]]\nname = 'speed'\nrole = 'primary'\n", "metric 'speed'; k"),
        (TOP + "[[metrics]]\nname = 'loss'\nrole = 'control'\n", "role: must be one o"),
        (DESIGN + "[controls]\nworkloads = 'x'", "controls.workloads: unknown key; d"),
        (DESIGN + "[devices.a]\nlink = 'fast'", "devices.a.link: must be like '1 Gbit"),
        (DESIGN + "[devices.a]\nlink = 1", "devices.a.link: must be a text in quotes"),
        (DESIGN + "[devices]\na = 1", "devices.a: must be a table [a], is 1"),
        (DESIGN + "[[claims]]\ntext = 'x'", "claims[1].metric: is missing"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_file_and_key(write_study, design, words):
    text = mistakes(write_study, design)
    assert words in text
    assert all("study.toml: " in line for line in text.splitlines())


def test_all_mistakes_are_told_at_once_one_a_line(write_study):
    text = mistakes(write_study, 'unti = "run"\n' + METRIC + 'margin = "no"\nrloe = 1')
    keys = [line.split("study.toml: ")[1].split(":")[0] for line in text.splitlines()]
    assert keys == ["metrics[1].margin", "metrics[1].rloe", "question", "unit", "unti"]


def test_control_characters_of_a_mistake_are_escaped(write_study):
    text = mistakes(write_study, '"\\u001b[31m\\nred" = 1\n' + DESIGN)
    assert "\x1b" not in text
    assert len(text.splitlines()) == 1


def test_a_folder_without_a_design_says_so(tmp_path):
    with pytest.raises(StudyError, match=r"study\.toml: no such file; a study needs"):
        open_study(tmp_path)
    with pytest.raises(StudyError, match="no such folder"):
        open_study(tmp_path / "nowhere")


def test_a_design_that_is_not_utf8_says_so(tmp_path):
    (tmp_path / "study.toml").write_bytes(b'question = "\xff"')
    with pytest.raises(StudyError, match="not TOML"):
        open_study(tmp_path)


@pytest.mark.parametrize(
    ("text", "name", "value", "scale"),
    [
        ("1 %", "throughput", 0.01, Scale.RATIO),
        ("+2.5%", "loss", 0.025, Scale.RATIO),
        ("0.5 pp", "loss", 0.005, Scale.DIFFERENCE),
        ("20 us", "rtt_p99", 20e-6, Scale.DIFFERENCE),
        ("10 Mbit/s", "throughput", 1e7, Scale.DIFFERENCE),
        ("0.1 1", "fairness", 0.1, Scale.DIFFERENCE),
    ],
)
def test_margin(text, name, value, scale):
    margin = parse_margin(text, metric(name))
    assert margin.value == pytest.approx(value)
    assert (margin.scale, margin.declared) == (scale, True)


def test_a_metric_without_a_margin_gets_a_default_that_says_so(write_study):
    design = opened(write_study, {"d/baseline/boot-1/run-1/t.x.csv": RATE}).design
    assert (design.metrics[0].margin.text, design.metrics[0].margin.declared) == (
        "2 %",
        False,
    )


def test_changing_the_design_changes_its_digest(write_study):
    files = {"d/baseline/boot-1/run-1/t.x.csv": RATE}
    one = open_study(write_study(DESIGN, (), files, "a/one")).design
    other = open_study(write_study(DESIGN + "margin = '9 %'", (), files, "a/b")).design
    assert one.digest != other.digest


# ---- layouts ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "path", "expected"),
    [
        pytest.param(
            "{device}/{variant}/boot-{boot}/{purpose}-{run}/{workload}.{rest}",
            "box/patched/boot-03/run-02/tcp-dl.numbers.router.csv",
            ("box", "patched", "03", "02", "tcp-dl", {}),
            id="default",
        ),
        pytest.param(
            "{device}/{variant}/block-{block}/{run}/{workload}.{rest}",
            "box/patched/block-7/1/udp.numbers.csv",
            ("box", "patched", "", "1", "udp", {"block": "7"}),
            id="block",
        ),
        pytest.param(
            "{variant}_{device}_{run}.json",
            "patched_box_5.json",
            ("box", "patched", "", "5", "test", {}),
            id="flat",
        ),
        pytest.param(
            "{device}/{variant}/{position}-{kernel}-{workload}.{rest}",
            "box/patched/4-v6.1-tcp.csv",
            ("box", "patched", "", "1", "tcp", {"kernel": "v6.1"}),
            id="further factors",
        ),
    ],
)
def test_layout(write_study, layout, path, expected):
    design = f'layout = "{layout}"\n' + DESIGN
    study = opened(write_study, {path: RATE}, design)
    (run,) = study.runs
    found = (run.device, run.variant, run.boot, run.run, run.workload, run.factors)
    assert found == expected
    assert list(study.files) == [path]
    assert study.leftovers == ()


def test_the_words_between_tool_and_extension_are_the_place(write_study):
    path = "d/baseline/boot-1/run-1/tcp.numbers.router.csv"
    (run,) = opened(write_study, {path: RATE}).runs
    assert [source.place for source in run.sources] == ["router"]


def test_files_of_one_run_are_put_together(write_study):
    folder = "d/baseline/boot-1/run-1/"
    files = {folder + "tcp.a.csv": RATE, folder + "tcp.b.folded": STACKS}
    files[folder + "udp.a.csv"] = RATE
    runs = opened(write_study, files).runs
    assert [(run.workload, len(run.sources)) for run in runs] == [
        ("tcp", 2),
        ("udp", 1),
    ]


def test_a_file_that_fits_no_layout_is_listed(write_study):
    files = {"d/baseline/boot-1/run-1/t.x.csv": RATE, "notes.txt": "x", "d/a.csv": RATE}
    study = opened(write_study, files)
    assert set(left(study)) == {"notes.txt", "d/a.csv"}
    assert all(
        "matches neither the layout" in reason for reason in left(study).values()
    )
    assert all(len(one.digest) == 64 for one in study.leftovers)


def test_a_file_of_an_unknown_tool_is_listed_and_not_broken(write_study):
    good = "d/baseline/boot-1/run-1/t.x.csv"
    odd = "d/baseline/boot-1/run-1/t.odd.txt"
    study = opened(write_study, {good: RATE, odd: "what is this\n"})
    assert left(study) == {odd: "no loader knows this file"}
    assert not study.leftovers[0].broken


@pytest.mark.parametrize("content", ["", '{"kernel":{"A":1', b"\x1f\x8bcut"])
def test_a_broken_file_is_listed_as_broken(write_study, content):
    good = "d/baseline/boot-1/run-1/t.x.csv"
    bad = "d/baseline/boot-1/run-1/t.bad.json"
    study = opened(write_study, {good: RATE, bad: content})
    assert [(one.path, one.broken) for one in study.leftovers] == [(bad, True)]
    assert list(study.files) == [good]


def test_files_of_an_undeclared_variant_are_listed(write_study):
    other = "d/patchd/boot-1/run-1/t.x.csv"
    study = opened(write_study, {"d/baseline/boot-1/run-1/t.x.csv": RATE, other: RATE})
    assert left(study) == {other: "variant 'patchd' is none of baseline, patched"}


def test_hidden_files_are_no_part_of_a_study(write_study):
    files = {"d/baseline/boot-1/run-1/t.x.csv": RATE, ".git/config": "x"}
    assert opened(write_study, files).leftovers == ()


def test_an_empty_study_says_where_it_looked(write_study):
    with pytest.raises(
        StudyError, match=r"no run of baseline or patched under the lay"
    ):
        opened(write_study, {})


def test_a_study_of_profiles_only_has_no_run(write_study):
    with pytest.raises(StudyError, match=r"no run of baseline"):
        opened(write_study, {"d/baseline/boot-1/profile-1/t.x.folded": STACKS})


def test_an_error_names_the_file_that_was_found_on_one_line(write_study):
    with pytest.raises(StudyError) as caught:
        opened(write_study, {"new\nline\x1b[1m.csv": RATE})
    assert "was found and not used" in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["<b>x", "a\nb", "\x1b[31mred", "$(id)", "a b;c"])
def test_hostile_names_are_only_text(write_study, name):
    study = opened(write_study, {f"{name}/baseline/boot-1/run-1/{name}.x.csv": RATE})
    (run,) = study.runs
    assert run.device.isprintable()
    assert run.workload.isprintable()
    assert run.name.isprintable()
    assert study.leftovers == ()


# ---- links --------------------------------------------------------------------------


def test_a_link_out_of_the_study_is_listed_and_not_read(write_study, tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text(RATE)
    folder = write_study(DESIGN, (), {"d/baseline/boot-1/run-1/t.x.csv": RATE})
    (folder / "d/baseline/boot-1/run-1/t.y.csv").symlink_to(secret)
    (folder / "d/baseline/boot-2").symlink_to(tmp_path, target_is_directory=True)
    study = open_study(folder)
    assert set(left(study)) == {"d/baseline/boot-1/run-1/t.y.csv", "d/baseline/boot-2"}
    assert all("leads out of the study" in one.reason for one in study.leftovers)
    assert {one.digest for one in study.leftovers} == {""}


def test_a_link_within_the_study_is_read_but_never_a_folder_or_nothing(write_study):
    folder = write_study(DESIGN, (), {"d/baseline/boot-1/run-1/t.x.csv": RATE})
    boots = folder / "d/baseline"
    (boots / "boot-1/run-1/u.x.csv").symlink_to("t.x.csv")
    (boots / "boot-2").symlink_to("boot-1", target_is_directory=True)
    (boots / "boot-1/run-1/v.x.csv").symlink_to("missing.csv")
    study = open_study(folder)
    assert [run.workload for run in study.runs] == ["t", "u"]
    assert set(left(study)) == {"d/baseline/boot-2", "d/baseline/boot-1/run-1/v.x.csv"}


@pytest.mark.parametrize("name", ["measurements.csv", "d/facts/uname.txt"])
def test_no_special_file_is_followed_out_of_the_study(write_study, tmp_path, name):
    (tmp_path / "secret.csv").write_text("device,variant," + RATE)
    folder = write_study(DESIGN, (), {"d/baseline/boot-1/run-1/t.x.csv": RATE})
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).symlink_to(tmp_path / "secret.csv")
    study = open_study(folder)
    assert list(left(study)) == [name]
    assert (len(study.runs), study.facts) == (1, ())


@pytest.mark.parametrize("kind", ["pipe", "ring", "folder"])
@pytest.mark.parametrize(
    "name", ["patch.mbox", "measurements.csv", "d/facts/uname.txt", RUN + "u.x.csv"]
)
def test_what_is_no_file_is_listed_and_not_opened(write_study, name, kind):
    folder = write_study(DESIGN, (), {RUN + "t.x.csv": RATE})
    put(folder / name, kind)
    study = open_study(folder)
    named = kind != "folder" or "/" not in name  # folders within are walked
    assert list(left(study)) == ([name] if named else [])
    assert len(study.runs) == 1


@pytest.mark.parametrize("kind", ["pipe", "ring", "device", "folder", "large"])
@pytest.mark.parametrize("name", ["plan.json", "runs.csv", "study.toml"])
def test_a_declared_file_that_is_none_is_one_line(write_study, name, kind):
    folder = write_study(DESIGN, (), {RUN + "t.x.csv": RATE})
    (folder / name).unlink(missing_ok=True)
    put(folder / name, kind)
    words = "not a file|is a link that leads out|is a link to a folder|larger than"
    with pytest.raises(StudyError, match=f"{name}: ({words})") as caught:
        open_study(folder)
    assert "\n" not in str(caught.value)


def put(path, kind):
    """Put something else in the place of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "large":
        path.touch()
        os.truncate(path, 10 * 2**30)  # holes: nothing is on the disk
    else:
        path.symlink_to("/dev/zero" if kind == "device" else path.name)


def test_a_sparse_file_of_many_gb_is_not_even_hashed(write_study, monkeypatch):
    folder = write_study(DESIGN, (), {RUN + "t.x.csv": RATE})
    put(folder / RUN / "u.iperf3.json", "large")
    hashed = []
    monkeypatch.setattr(large, "large", hashed.append)
    (one,) = open_study(folder).leftovers
    assert "larger than 256 MiB" in one.reason
    assert hashed == []


def test_a_raw_file_whose_name_is_not_utf_8_is_used_and_shown_with_escapes(
    write_study, capsys
):
    files = {
        f"d\udce9/{side}/boot-1/run-{run}/t\udcff.x.csv": RATE
        for side in ("baseline", "patched")
        for run in (1, 2)
    }
    folder = write_study(DESIGN, (), files)
    study = open_study(folder)
    assert len(study.files) == 4
    assert set(per_run(study)["path"]) == {printable(one) for one in files}
    assert main(["check", str(folder)]) == 1
    assert r"d\udce9" in capsys.readouterr().out


# ---- pairs, purposes, facts ---------------------------------------------------------


def test_two_snapshots_become_one_difference(write_study):
    files = pair("d/baseline/boot-1/run-1/t.nstat.router.{}.json", 5, 25)
    study = opened(write_study, files)
    (source,) = study.runs[0].sources
    assert source.place == "router"
    assert [one.value for one in source.capture.measurements] == [20]
    assert set(study.files) == set(files)


@pytest.mark.parametrize(("when", "other"), [("before", "after"), ("after", "before")])
def test_a_snapshot_without_its_pair_is_listed(write_study, when, other):
    files = pair("d/baseline/boot-1/run-1/t.nstat.{}.json", 5, 25)
    gone = next(path for path in files if other in path)
    files[gone.replace(f"nstat.{other}.json", "x.csv")] = RATE
    del files[gone]
    study = opened(write_study, files)
    (reason,) = left(study).values()
    assert reason == f"a snapshot {when} the run without one {other}"


def test_counters_since_boot_alone_are_listed(write_study):
    files = {"d/baseline/boot-1/run-1/t.nstat.json": '{"kernel": {"IpInReceives": 5}}'}
    files["d/baseline/boot-1/run-1/t.x.csv"] = RATE
    assert "counters since boot" in next(
        iter(left(opened(write_study, files)).values())
    )


def test_snapshots_of_two_tools_are_no_pair(write_study):
    files = {
        "d/baseline/boot-1/run-1/t.x.csv": RATE,
        "d/baseline/boot-1/run-1/t.c.before.txt": "10.00 5.00\n",
        "d/baseline/boot-1/run-1/t.c.after.txt": '{"kernel": {"IpInReceives": 5}}',
    }
    reasons = left(opened(write_study, files))
    assert len(reasons) == 2
    assert all("cannot be compared" in reason for reason in reasons.values())


@pytest.mark.parametrize(
    ("folder", "said", "measuring"),
    [
        ("run", "run", True),
        ("run", "measurement", True),
        ("run", "profile", False),
        ("profile", "measurement", False),
        ("perf", "", False),
    ],
)
def test_a_run_measures_only_where_folder_and_run_json_agree(
    write_study, folder, said, measuring
):
    path = f"d/patched/boot-1/{folder}-1/t."
    facts = {"purpose": said, "workload": "t", "run": 1}
    files = {path + "x.csv": RATE, path + "run.json": json.dumps(facts)}
    files["d/baseline/boot-1/run-1/t.x.csv"] = RATE
    runs = {run.variant: run for run in opened(write_study, files).runs}
    assert runs["patched"].measuring is measuring


def test_run_json_gives_time_position_and_boot(write_study):
    facts = {"workload": "t", "run": 1, "position": 7, "boot_id": "b1", "build_id": "x"}
    facts["started_at"] = "2026-11-30T16:02:22+01:00"
    files = {"baseline_d_1_t.run.json": json.dumps(facts)}
    design = "layout = '{variant}_{device}_{run}_{workload}.{rest}'\n" + DESIGN
    (run,) = opened(write_study, files, design).runs
    assert (run.position, run.started_at) == (7, "2026-11-30T15:02:22Z")
    assert (run.boot, run.build) == ("b1", "x")


def test_runs_are_sorted_by_their_position_in_time(write_study, turns):
    rows = turns([1.0, 2.0], [3.0, 4.0])
    runs = open_study(write_study(DESIGN, reversed(rows))).runs
    assert [run.position for run in runs] == [1, 2, 3, 4]
    variants = ["baseline", "patched", "patched", "baseline"]
    assert [run.variant for run in runs] == variants


def test_fact_files_belong_to_device_boot_and_variant(write_study):
    files = {
        "d/baseline/boot-1/run-1/t.x.csv": RATE,
        "d/facts/lscpu.txt": "cpu",
        "d/facts/boot-2/patched.ethtool_k.txt": "gro: on",
    }
    found = {
        (one.boot, one.variant, one.name) for one in opened(write_study, files).facts
    }
    assert found == {
        ("", "", "lscpu.txt"),
        ("2", "patched", "patched.ethtool_k.txt"),
    }


def test_a_broken_fact_file_is_listed_and_spoils_nothing(write_study):
    files = {"d/baseline/boot-1/run-1/t.x.csv": RATE, "d/facts/a.gz": b"\x1f\x8bcut"}
    study = opened(write_study, files)
    assert [(one.path, one.broken) for one in study.leftovers] == [
        ("d/facts/a.gz", True)
    ]


# ---- runs.csv -----------------------------------------------------------------------


def listed(write_study, table, files=None):
    files = {"one.csv": RATE, "two.csv": RATE} | (files or {})
    return opened(write_study, {**files, "runs.csv": table})


def test_runs_csv_names_the_factors_of_each_file(write_study):
    table = "path,device,variant,workload,position,block\none.csv,d,patched,tcp,3,b\n"
    study = listed(write_study, table)
    (run,) = study.runs
    assert (run.variant, run.workload, run.position) == ("patched", "tcp", 3)
    assert run.factors == {"block": "b"}
    assert left(study) == {"two.csv": "is not listed in runs.csv"}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("", "needs a header with the columns path,device,variant"),
        ("path,device\none.csv,d\n", "needs a header with the columns"),
        ("path,device,variant\n../x.csv,d,patched\n", "runs.csv:2: there is no file"),
        ("path,device,variant\n../study.txt,d,patched\n", "lies outside the study"),
        ("path,device,variant\ngone.csv,d,patched\n", "there is no file 'gone.csv'"),
        ("path,device,variant\nt\0.csv,d,patched\n", "runs.csv"),
        ("path,device,variant\none.csv,d\n", "runs.csv:2: not as many cells"),
        ("path,device,variant\none.csv,d,patched,x\n", "not as many cells"),
        ("path,device,variant\none.csv,d,\n", "runs.csv:2: the variant is empty"),
        ("path,device,variant\none.csv,,\n", "the device and the variant is empty"),
        (
            "path,device,variant\none.csv,d,patched\none.csv,d,baseline\n",
            "runs.csv:3: 'one.csv' is listed twice",
        ),
        ('path,device,variant\n"one.csv,d,patched\n', "not CSV in UTF-8"),
        (b"path,device,variant\n\xff,d,patched\n", "not CSV in UTF-8"),
    ],
)
def test_a_mistake_of_runs_csv_says_which_line(write_study, tmp_path, table, words):
    (tmp_path / "studies" / "driver").mkdir(parents=True)
    (tmp_path / "studies" / "driver" / "study.txt").write_text(RATE)
    with pytest.raises(StudyError) as caught:
        listed(write_study, table)
    assert words in str(caught.value)


def test_runs_csv_lists_links_that_lead_out(write_study, tmp_path):
    (tmp_path / "secret.csv").write_text(RATE)
    table = "path,device,variant\none.csv,d,patched\n"
    folder = write_study(DESIGN, (), {"one.csv": RATE, "runs.csv": table})
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    assert "leads out of the study" in left(open_study(folder))["link.csv"]


# ---- measurements.csv ---------------------------------------------------------------


def test_rows_of_one_run_make_one_run(write_study, turns):
    rows = [*turns([1.0], [2.0]), *turns([3.0], [4.0], metric="rtt_p50", unit="ms")]
    runs = open_study(write_study(DESIGN, rows)).runs
    assert [run.variant for run in runs] == ["baseline", "patched"]
    measured = [one.metric for one in runs[0].sources[0].capture.measurements]
    assert measured == ["throughput", "rtt_p50"]
    assert runs[0].sources[0].capture.measurements[0].labels == {}


def test_the_column_that_the_design_calls_block_is_a_factor(write_study, turns):
    rows = turns([1.0], [2.0], pair="7", interface="eth0")
    runs = open_study(write_study('block = "pair"\n' + DESIGN, rows)).runs
    assert runs[0].factors == {"pair": "7"}
    assert runs[0].sources[0].capture.measurements[0].labels == {"interface": "eth0"}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"variant": "patched"}, "a row has no device"),
        ({"device": "d"}, "a row has no variant"),
        ({"device": "d", "variant": "patchd"}, "'patchd' is none of baseline, patched"),
    ],
)
def test_a_row_that_belongs_nowhere_is_refused(write_study, row, words):
    shared = {"metric": "throughput", "unit": "bit/s", "value": "1"}
    with pytest.raises(StudyError, match=words):
        open_study(write_study(DESIGN, [shared | row]))


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "NaN", "1_0", "", "12 Mbit/s"])
def test_a_value_that_is_no_number_refuses_the_table(write_study, turns, value):
    rows = turns([1.0, 2.0], [3.0, 4.0])
    rows[2]["value"] = value
    with pytest.raises(StudyError, match=r"no run of .* is not a number such as"):
        open_study(write_study(DESIGN, rows))


# ---- bare files ---------------------------------------------------------------------


def test_bare_files_are_runs_and_pairs_are_one(tmp_path):
    old = [tmp_path / f"old{number}.csv" for number in range(2)]
    new = [tmp_path / f"new.nstat.{when}.json" for when in ("before", "after")]
    for path in old:
        path.write_text(RATE)
    for path in new:
        path.write_text('{"kernel": {"IpInReceives": 5}}')
    study = of_files({"a": old, "b": new}, metric="throughput", margin="3 %")
    assert [run.variant for run in study.runs] == ["a", "a", "b"]
    assert study.design.metrics[0].margin.value == pytest.approx(0.03)


def test_a_set_without_a_usable_file_says_why(tmp_path):
    (tmp_path / "old.csv").write_text(RATE)
    (tmp_path / "new.txt").write_text("what\n")
    sets = {"a": [tmp_path / "old.csv"], "b": [tmp_path / "new.txt"]}
    with pytest.raises(StudyError, match=r"no b file can be used.*no loader knows"):
        of_files(sets, metric="throughput", margin="")
    with pytest.raises(StudyError, match="name: unknown metric 'speed'"):
        of_files(sets, metric="speed", margin="")


def test_the_order_in_which_the_disk_lists_files_changes_nothing(write_study, turns):
    rows = turns([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    one = open_study(write_study(DESIGN, rows, name="a/one"))
    other = open_study(write_study(DESIGN, sorted(rows, key=str), name="a/two"))
    assert [(run.name, run.position) for run in one.runs] == [
        (run.name, run.position) for run in other.runs
    ]
