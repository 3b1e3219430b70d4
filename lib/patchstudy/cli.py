"""Command line: words to calls, no other work.

Results go to standard output, everything else to standard error. Heavy modules are
imported inside the commands, so that ``--help`` answers at once.
"""

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from patchstudy.errors import PatchstudyError, printable

if TYPE_CHECKING:
    from patchstudy.findings import Assessment
    from patchstudy.report.batch import Order
    from patchstudy.report.progress import Progress

OK: Final = 0
DOUBTS: Final = 1
UNUSABLE: Final = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    arguments = _parser().parse_args(argv)
    try:
        status = arguments.run(arguments)
        sys.stdout.flush()  # here a reader that went away is noticed, not at exit
    except PatchstudyError as error:
        _complain(str(error))
        return UNUSABLE
    except BrokenPipeError:  # the reader of our output went away, as ``head`` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        _complain("stopped; finished reports are whole")
        return 130
    else:
        return status


# ---- the words ----------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="patchstudy",
        description="From raw network measurements before and after a driver patch\n"
        "to a report a maintainer can trust.",
        epilog="example: patchstudy report data -o reports\n\n" + _STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_report(commands)
    _add_check(commands)
    _add_text(commands)
    _add_figure(commands)
    _add_load(commands)
    _add_compare(commands)
    _add_plan(commands)
    _add_verify(commands)
    _add_new(commands)
    return parser


_STATUS: Final = """\
exit status: 0 done; 1 done, with doubts (check), differences (verify) or a
change for the worse (compare --fail-on worse); 2 something could not be read or
used, the rest was done; 130 stopped by the user."""


class _Version(argparse.Action):
    """Print the version; it is looked up only when asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        _say(f"patchstudy {version('patchstudy')}")
        parser.exit()


def _add_report(commands: Any) -> None:  # noqa: ANN401 - argparse names no type
    command = commands.add_parser(
        "report",
        help="make the reports of all studies",
        epilog="example: patchstudy report data --study qmi_wwan/qmap-headroom",
    )
    command.add_argument(
        "data",
        nargs="?",
        type=Path,
        default=Path("data"),
        metavar="DATA",
        help="folder of studies (default: data)",
    )
    command.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("reports"),
        metavar="DIR",
        help="folder of reports (default: reports)",
    )
    command.add_argument(
        "--study",
        action="append",
        default=[],
        dest="studies",
        metavar="DRIVER/PATCH",
        help="only this one; may be repeated",
    )
    command.add_argument(
        "--jobs",
        type=_positive,
        metavar="N",
        help="studies at once (default: as cores and memory allow)",
    )
    command.add_argument(
        "--formats",
        type=_formats,
        default="html,pdf,text",
        metavar="F,F",
        help="of html,pdf,text (default: all)",
    )
    command.add_argument(
        "--notebook",
        type=Path,
        metavar="FILE",
        help="run this notebook instead of the shipped one",
    )
    command.add_argument(
        "--notebooks",
        type=Path,
        default=Path("notebooks"),
        metavar="DIR",
        help="each notebook of this folder that takes a study is run for every study "
        "and gets a page of its own, but for the shipped ones (default: notebooks)",
    )
    command.add_argument(
        "--redact",
        action="store_true",
        help="keep names of hosts and users, and addresses, that raw files hold out of "
        "all files (out of the text they are kept always)",
    )
    _add_batch(command)
    command.set_defaults(run=_report)


def _add_batch(command: argparse.ArgumentParser) -> None:
    """Add the options that change no byte of a report."""
    command.add_argument(
        "--force", action="store_true", help="make reports again that are still right"
    )
    command.add_argument(
        "--explain",
        action="store_true",
        help="say why each report would be made again or not, and make none",
    )
    command.add_argument(
        "--timeout",
        type=_positive,
        default=600,
        metavar="S",
        help="seconds that one notebook may take (default: 600)",
    )
    command.add_argument(
        "--memory",
        type=_memory,
        metavar="SIZE",
        help="what one notebook may hold, as 4G (default: its part of what is free)",
    )
    command.add_argument(
        "--engine",
        default="patchstudy-warm",
        choices=("patchstudy-warm", "nbclient"),
        help="papermill engine: forked kernels, or a new process for each",
    )
    command.add_argument(
        "--executor",
        default="local",
        metavar="WHERE",
        help="local (default), or dask://HOST:PORT of a scheduler",
    )
    command.add_argument(
        "--junit", type=Path, metavar="FILE", help="write the outcomes as JUnit XML"
    )
    command.add_argument(
        "--fail-on",
        type=_gates,
        default=(),
        metavar="W,W",
        help="exit with 1 on any of veto,worse",
    )
    command.add_argument(
        "--parsed",
        type=Path,
        metavar="DIR",
        help="keep what large traces say here (default: the user's cache folder)",
    )
    command.add_argument(
        "--no-parsed",
        action="store_true",
        help="read large traces each time, and keep nothing of them",
    )
    command.add_argument("--quiet", action="store_true", help="show no progress")


def _add_check(commands: Any) -> None:  # noqa: ANN401
    command = commands.add_parser(
        "check",
        help="say what is there, missing or doubtful",
        epilog="example: patchstudy check data/qmi_wwan/qmap-headroom",
    )
    command.add_argument(
        "data",
        nargs="?",
        type=Path,
        default=Path("data"),
        metavar="DATA",
        help="a study or a folder of studies",
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_check)


def _add_text(commands: Any) -> None:  # noqa: ANN401
    command = commands.add_parser(
        "text",
        help="print the block for the mailing list",
        epilog="example: patchstudy text data/qmi_wwan/qmap-headroom",
    )
    command.add_argument("study", type=Path, metavar="STUDY")
    command.add_argument(
        "--no-redact",
        action="store_false",
        dest="redact",
        help="keep names of hosts and users, and addresses, that raw files hold",
    )
    command.add_argument(
        "--form",
        default="block",
        choices=("block", "trailer", "cover"),
        help="the block for a mail, trailers for a commit message, or a part of a "
        "cover letter (default: block)",
    )
    command.add_argument(
        "--width",
        type=_positive,
        default=72,
        metavar="N",
        help="longest line, 60 to 100 columns (default: 72)",
    )
    command.add_argument(
        "--markdown", action="store_true", help="write Markdown, for a forge"
    )
    command.set_defaults(run=_text)


def _add_figure(commands: Any) -> None:  # noqa: ANN401
    command = commands.add_parser(
        "figure",
        help="draw one figure of a study",
        epilog="example: patchstudy figure data/veth/gro runs:throughput -o runs.svg",
    )
    command.add_argument("study", type=Path, metavar="STUDY")
    command.add_argument("name", nargs="?", default="", metavar="NAME")
    command.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="where to draw it: a file named .svg, .png or .pdf",
    )
    command.add_argument(
        "--list", action="store_true", help="print the names of all its figures"
    )
    command.set_defaults(run=_figure)


def _add_load(commands: Any) -> None:  # noqa: ANN401
    command = commands.add_parser(
        "load",
        help="show what the loaders see in raw files",
        epilog="example: patchstudy load --format json run-01/tcp.iperf3.json",
    )
    command.add_argument("files", nargs="+", type=Path, metavar="FILE")
    command.add_argument(
        "--format", default="table", choices=("table", "csv", "json", "parquet")
    )
    command.add_argument(
        "--grain",
        default="run",
        choices=("run", "interval"),
        help="values of whole runs, or of intervals (tables only)",
    )
    command.add_argument(
        "--explain",
        action="store_true",
        help="say which loader took a file, why, and what its values are",
    )
    command.set_defaults(run=_load)


def _add_compare(commands: Any) -> None:  # noqa: ANN401
    command = commands.add_parser(
        "compare",
        help="compare two sets of raw files, without a study",
        epilog="example: patchstudy compare old-*.json --with new-*.json",
    )
    command.add_argument("baseline", nargs="+", type=Path, metavar="BASELINE")
    command.add_argument(
        "--with", nargs="+", type=Path, required=True, dest="patched", metavar="PATCHED"
    )
    command.add_argument(
        "--metric",
        default="throughput",
        metavar="M",
        help="the metric that decides (default: throughput)",
    )
    command.add_argument(
        "--margin",
        default="",
        metavar="M",
        help="smallest change that matters, as '2 %%'",
    )
    command.add_argument("--fail-on", choices=("worse",), help="then exit with 1")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_compare)


def _add_plan(commands: Any) -> None:  # noqa: ANN401
    command = commands.add_parser(
        "plan",
        help="say how many units show what, and in which order to measure",
        epilog="example: patchstudy plan data/veth/txqueuelen --detect '20 %'",
    )
    command.add_argument(
        "pilot",
        nargs="*",
        type=Path,
        metavar="STUDY",
        help="a study, or with --with the baseline's raw files",
    )
    command.add_argument(
        "--with",
        nargs="+",
        type=Path,
        default=[],
        dest="patched",
        metavar="PATCHED",
        help="raw files of the patched variant, as compare takes them",
    )
    for name, default, words in _PLAN_WORDS:
        command.add_argument(f"--{name}", default=default, metavar="X", help=words)
    for name, default, words in _PLAN_NUMBERS:
        command.add_argument(
            f"--{name}", type=float, default=default, metavar="X", help=words
        )
    command.add_argument(
        "--blocks", type=_positive, metavar="N", help="measure just so many blocks"
    )
    command.add_argument("--order", default="abba", choices=("abba", "random"))
    command.add_argument(
        "--seed", type=int, metavar="N", help="of the order (default: from study.toml)"
    )
    command.add_argument("--format", default="text", choices=("text", "csv", "json"))
    command.add_argument(
        "--store", type=Path, metavar="FILE", help="write the plan as JSON as well"
    )
    command.set_defaults(run=_plan)


def _add_verify(commands: Any) -> None:  # noqa: ANN401
    command = commands.add_parser(
        "verify",
        help="derive the numbers of reports again from the raw files",
        epilog="example: patchstudy verify reports/qmi_wwan/qmap-headroom; exit status "
        "1 where anything differs",
    )
    command.add_argument(
        "reports", nargs="+", type=Path, metavar="REPORT_DIR", help="a report, or many"
    )
    command.add_argument(
        "--data",
        type=Path,
        metavar="STUDY",
        help="the study (default: the one that the report's notebook names)",
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_verify)


_PLAN_WORDS: Final = (
    ("detect", "", "change of the primary metric, as '2 %%' (default: its margin)"),
    ("metric", "throughput", "what decides, without a study (default: throughput)"),
    ("sd", "", "spread of one variant's runs, as '1.5 %%', instead of a pilot"),
    ("boot-sd", "", "spread that boots add, with --run-sd"),
    ("run-sd", "", "spread of the runs within a boot, with --boot-sd"),
)
_PLAN_NUMBERS: Final = (
    ("power", 0.8, "chance that such a change is shown (default: 0.8)"),
    ("boot-cost", 60.0, "seconds to begin a boot or block (default: 60)"),
    ("run-cost", 40.0, "seconds of one run of a variant (default: 40)"),
)


def _add_new(commands: Any) -> None:  # noqa: ANN401
    command = commands.add_parser(
        "new",
        help="begin a study: a folder with a study.toml to go through",
        epilog="example: patchstudy new bgmac/rx-buffer-size --patch-file mail.mbox",
    )
    command.add_argument("study", metavar="DRIVER/PATCH")
    command.add_argument(
        "--patch-file",
        type=Path,
        metavar="F",
        help="the patch as mail, mbox or diff: title, files and claims come from it",
    )
    command.add_argument(
        "--data",
        type=Path,
        default=Path("data"),
        metavar="DATA",
        help="folder of studies (default: data)",
    )
    command.add_argument(
        "--kernel",
        type=Path,
        metavar="DIR",
        help="a kernel tree: names module, Kconfig prompt and MAINTAINERS sections",
    )
    command.set_defaults(run=_new)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of at least 1")
    return int(text)


def _formats(text: str) -> tuple[str, ...]:
    known = ("html", "pdf", "text")
    names = tuple(name for name in text.split(",") if name)
    if unknown := [name for name in names if name not in known]:
        raise argparse.ArgumentTypeError(
            f"{unknown[0]!r} is none of {', '.join(known)}"
        )
    return names


def _memory(text: str) -> int:
    """Read a size such as ``4G``, in bytes."""
    number, unit = text[:-1], text[-1:].upper()
    powers = {"M": 20, "G": 30, "T": 40}
    if unit not in powers or not number.isdecimal() or int(number) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 4G or 500M")
    return int(number) << powers[unit]


def _gates(text: str) -> tuple[str, ...]:
    names = tuple(name for name in text.split(",") if name)
    if unknown := [name for name in names if name not in {"veto", "worse"}]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of veto, worse")
    return names


# ---- the calls ----------------------------------------------------------------------


def _report(arguments: argparse.Namespace) -> int:
    from patchstudy.report import batch, gates, junit

    folders = batch.find(arguments.data, arguments.studies)
    order = _order(arguments)
    if arguments.explain:
        for task in batch.tasks(folders, order):
            told = batch.in_words(batch.reasons(task))
            _say(printable(f"{task.study}: {told or 'up to date'}"))
        return OK
    with _stoppable(), _progress(len(folders), quiet=arguments.quiet) as tell:
        outcomes = batch.report_all(folders, order, tell=tell)
    for one in outcomes:
        for line in [*one.error.splitlines(), *one.unread]:
            _complain(line)
    batch.index(outcomes, order)
    if order.parsed is not None and any(one.made for one in outcomes):
        from patchstudy.loaders import parsed

        parsed.tidy(order.parsed)
    if arguments.junit is not None:
        junit.store(arguments.junit, outcomes)
    _say(gates.in_one_line(outcomes, order.out / "index.html"))
    if not all(one.ok for one in outcomes):
        return UNUSABLE
    return DOUBTS if gates.shut(outcomes, arguments.fail_on) else OK


def _order(arguments: argparse.Namespace) -> "Order":
    from patchstudy.report import added, batch, capacity

    jobs = arguments.jobs or capacity.jobs()
    return batch.Order(
        out=arguments.output,
        formats=arguments.formats,
        notebook=arguments.notebook or batch.shipped("patch.ipynb"),
        added=added.find(arguments.notebooks, instead=arguments.notebook),
        jobs=jobs,
        redact=arguments.redact,
        force=arguments.force,
        timeout_s=arguments.timeout,
        memory_byte=arguments.memory or capacity.share_byte(jobs),
        engine=arguments.engine,
        executor=arguments.executor,
        parsed=None if arguments.no_parsed else arguments.parsed or _cache(),
    )


def _cache() -> Path:
    """Return the folder of this user for what can be made again."""
    import platformdirs

    return platformdirs.user_cache_path("patchstudy", appauthor=False) / "parsed"


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let a polite kill stop a batch as Ctrl-C does: nothing is left half-done."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _progress(total: int, *, quiet: bool) -> "Progress":
    from patchstudy.report.progress import Progress

    return Progress(total, quiet=quiet)


def _check(arguments: argparse.Namespace) -> int:
    from patchstudy.report import batch, listing

    statuses, contents = [], []
    for folder in batch.find(arguments.data, ()):
        try:
            content = listing.checked(folder)
        except PatchstudyError as error:
            _complain(str(error))
            statuses.append(UNUSABLE)
            continue
        statuses.append(content["status"])
        contents.append(content)
        if not arguments.json:
            _say(listing.check_text(content))
    if arguments.json:
        _say(listing.as_json(contents))
    elif told := listing.testable_text(contents):
        _say("\n" + told)
    return max(statuses)


def _text(arguments: argparse.Namespace) -> int:
    from patchstudy.report import markdown, text

    assessment = _assessed(arguments.study)
    shown = text.for_mail(assessment) if arguments.redact else assessment
    forms = {"block": text.text, "trailer": text.trailer, "cover": text.cover}
    if arguments.markdown:
        sys.stdout.write(markdown.markdown(shown))
    else:
        write = forms[arguments.form]
        sys.stdout.write(write(shown, width=arguments.width))
    return _unread(assessment)


def _figure(arguments: argparse.Namespace) -> int:
    from patchstudy.errors import StudyError
    from patchstudy.report import drawn

    if not arguments.list and not (arguments.name and arguments.output):
        raise StudyError("give the figure's name and -o FILE, or --list")
    assessment = _assessed(arguments.study)
    if arguments.list:
        found = drawn.named(assessment)
        width = max(map(len, found), default=0)
        for name, one in found.items():
            _say(printable(f"{name:<{width}}  {one.words}"))
        return OK
    drawn.write(assessment, arguments.name, arguments.output)
    return OK


def _assessed(folder: Path) -> "Assessment":
    from patchstudy.findings import assess
    from patchstudy.study import open_study

    return assess(open_study(folder))


def _unread(assessment: "Assessment") -> int:
    """Name the raw files that could not be read."""
    broken = [one for one in assessment.study.leftovers if one.broken]
    for one in broken:
        _complain(f"{assessment.study.folder / one.path}: {one.reason}")
    return UNUSABLE if broken else OK


def _load(arguments: argparse.Namespace) -> int:
    from patchstudy.report import explain, listing

    captures, errors = listing.loaded(arguments.files)
    if arguments.explain:
        sys.stdout.writelines(explain.explained(arguments.files, errors))
    elif arguments.format == "json":
        sys.stdout.writelines(listing.load_json(captures, errors))
    elif arguments.format == "parquet":
        sys.stdout.buffer.write(listing.load_parquet(captures, arguments.grain))
    else:
        show = listing.load_csv if arguments.format == "csv" else listing.load_text
        sys.stdout.writelines(show(captures, arguments.grain))
    for error in errors:
        _complain(str(error))
    return UNUSABLE if errors else OK


def _compare(arguments: argparse.Namespace) -> int:
    from patchstudy.findings import assess
    from patchstudy.report import listing
    from patchstudy.study import of_files
    from patchstudy.verdicts import Verdict

    study = of_files(
        {"baseline": arguments.baseline, "patched": arguments.patched},
        metric=arguments.metric,
        margin=arguments.margin,
    )
    assessment = assess(study)
    _say((listing.compare_json if arguments.json else listing.compare_text)(assessment))
    status = _unread(assessment)
    worse = [one for one in assessment.findings if one.verdict is Verdict.WORSE]
    decides = [one for one in worse if one.planned.metric.name == arguments.metric]
    return status or (DOUBTS if arguments.fail_on and decides else OK)


def _plan(arguments: argparse.Namespace) -> int:
    from patchstudy import plan
    from patchstudy.report import listing, planning

    wish = plan.Wish(
        detect=arguments.detect,
        power=arguments.power,
        order=plan.Order(arguments.order),
        seed=arguments.seed,
        blocks=arguments.blocks,
        boot_cost_s=arguments.boot_cost,
        run_cost_s=arguments.run_cost,
    )
    given = plan.Given(
        metric=arguments.metric,
        sd=arguments.sd,
        boot_sd=arguments.boot_sd,
        run_sd=arguments.run_sd,
    )
    campaign = plan.make(arguments.pilot, arguments.patched, given, wish)
    content = listing.as_json(planning.plan_content(campaign))
    if arguments.store is not None:
        planning.store(arguments.store, planning.as_bytes(content))
    shown = {"text": planning.plan_text, "csv": planning.plan_csv}
    _say(content if arguments.format == "json" else shown[arguments.format](campaign))
    return OK


def _verify(arguments: argparse.Namespace) -> int:
    from dataclasses import asdict

    from patchstudy.report import listing, verify

    statuses, contents = [OK], []
    for folder in verify.report_folders(arguments.reports):
        try:
            found = verify.verify(folder, arguments.data)
        except PatchstudyError as error:
            _complain(str(error))
            statuses.append(UNUSABLE)
            continue
        statuses.append(DOUBTS if found.differences else OK)
        contents.append(asdict(found))
        if not arguments.json:
            _say("\n".join(verify.lines(found)))
    if arguments.json:
        _say(listing.as_json(contents))
    return max(statuses)


def _new(arguments: argparse.Namespace) -> int:
    from patchstudy.report import starting

    started = starting.start(
        arguments.data,
        arguments.study,
        patch_file=arguments.patch_file,
        kernel=arguments.kernel,
    )
    for line in starting.steps(started):
        _say(printable(line))
    return OK


def _say(text: str, *, error: bool = False) -> None:
    stream = sys.stderr if error else sys.stdout
    stream.write(text.rstrip("\n") + "\n")


def _complain(text: str) -> None:
    for line in text.splitlines():
        sys.stderr.write(f"patchstudy: {printable(line)}\n")
