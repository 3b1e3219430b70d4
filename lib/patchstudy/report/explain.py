"""What ``patchstudy load --explain`` prints: who read a file, why, and from where.

Nothing is worked out here: the reasons and the rules are what the loader that took the
file says of itself (its docstring, that of its ``sniff``, and ``SOURCES``); the doubts
are the file's own.
"""

import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from patchstudy import loaders
from patchstudy.errors import CaptureError
from patchstudy.records import Capture
from patchstudy.report.listing import raw_files
from patchstudy.report.table import visible

_WIDTH = 72


def explained(paths: Iterable[Path], errors: list[CaptureError]) -> Iterator[str]:
    """Yield a paragraph about each raw file, wrapped for a terminal.

    Why a file cannot be read is added to ``errors``.
    """
    start = ""
    for file in (file for path in paths for file in raw_files(path)):
        for raw in loaders.read_all(file):
            if isinstance(raw, CaptureError):
                errors.append(raw)
                continue
            try:
                name, capture = loaders.taker(raw), loaders.load_raw(raw)
            except CaptureError as error:
                errors.append(error)
                continue
            yield start + "\n".join(_lines(name, capture)) + "\n"
            start = "\n"


def _lines(name: str, capture: Capture) -> Iterator[str]:
    loader = loaders.LOADERS[name]
    about, _, rules = (inspect.getdoc(loader) or "").partition("\n")
    version = f" {capture.tool_version}" if capture.tool_version else ""
    yield visible(f"{capture.path}: {capture.tool}{version}")
    yield from _wrapped(f"loader {name}: ", about.replace("``", ""))
    yield from _wrapped("taken by its content: ", _reason(loader.sniff))
    yield f"started: {capture.started_at or 'not told'}"
    sources: Mapping[str, str] | None = getattr(loader, "SOURCES", None)
    if sources:
        yield from _of_metrics(capture, sources)
    else:
        yield from (f"  {line}".rstrip() for line in rules.strip().splitlines())
    if capture.error:
        yield from _wrapped("aborted run: ", capture.error.text)
    for caveat in capture.caveats:
        todo = f" ({caveat.todo})" if caveat.todo else ""
        yield from _wrapped(f"{caveat.severity}: ", f"{caveat.text}{todo}")


def _reason(sniff: object) -> str:
    """Return what ``sniff`` asks of a file, as the answer: it does so."""
    asked = (inspect.getdoc(sniff) or "").partition("\n")[0]
    return asked.removeprefix("Say whether ").replace("``", "")


def _of_metrics(capture: Capture, sources: Mapping[str, str]) -> Iterator[str]:
    """Yield from where the values of each metric come that the file has."""
    names = [one.metric for one in capture.measurements]
    for pattern, source in sources.items():
        count = sum(fnmatchcase(name, pattern) for name in names)
        if count:
            values = "1 value" if count == 1 else f"{count} values"
            yield from _wrapped(f"{pattern}, {values}: ", source)


def _wrapped(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        visible(label + text),
        _WIDTH,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
