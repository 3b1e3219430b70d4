"""What a kernel tree says of the files of a patch: module, Kconfig prompt, sections.

Makefiles as of Documentation/kbuild/makefiles.rst: ``obj-$(CONFIG_X) += m.o`` and the
lists ``m-y``, ``m-objs`` and ``m-$(CONFIG_Y)``. MAINTAINERS as its own head says: F and
X are path patterns (a slash at the end takes all below, ``*`` no slash), N is a regular
expression. Sections and lists are named, people never.
"""

import fnmatch
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from patchstudy.errors import StudyError, printable

#: Largest file of a tree that is read.
MAX_BYTES: Final = 16 * 2**20

_LINE: Final = re.compile(
    r"^([\w.-]+?)-(\$[({]CONFIG_\w+[)}]|y|m|objs)\s*[:+]?=\s*(.*)$"
)
_CONFIG: Final = re.compile(r"CONFIG_(\w+)")
_PROMPT: Final = re.compile(
    r"^(?:menu)?config (\w+)\n(?:[ \t]++[^\n]*+\n|\n)*?"
    r"[ \t]++(?:tristate|bool) \"([^\"]+)\"",
    re.MULTILINE,
)
_FIELD: Final = re.compile(r"^([A-Z]):\s*(.+)$")
_HEADS: Final = frozenset([".c", ".S", ".rs"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A module: its name, the Kconfig symbol that builds it, and its prompt or ''."""

    name: str
    config: str
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of MAINTAINERS with its mailing lists."""

    name: str
    lists: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InTree:
    """Modules and sections of the files of a patch, each once, the nearest first."""

    modules: tuple[Module, ...]
    sections: tuple[Section, ...]


def in_tree(tree: Path, paths: Sequence[str]) -> InTree:
    """Look the files of a patch up in a kernel tree.

    Raises
    ------
    StudyError
        If the folder is no kernel tree.
    """
    if not ((tree / "MAINTAINERS").is_file() and (tree / "Kconfig").is_file()):
        raise StudyError(
            f"{tree}: no kernel tree (MAINTAINERS and Kconfig are not both there)"
        )
    inside = [one for one in paths if _plain(one)]
    modules = dict.fromkeys(x for one in inside for x in modules_of(tree, one))
    sections = list(_sections(_text(tree / "MAINTAINERS")))
    found = {
        x.name: Section(name=x.name, lists=x.lists)
        for one in inside
        for x in _matching(sections, one)
    }
    return InTree(modules=tuple(modules), sections=tuple(found.values()))


def _plain(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and ".." not in parts and not PurePosixPath(path).is_absolute()


def _text(path: Path) -> str:
    """Return a file of the tree; nothing where it is none, or too large."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


# ---- Makefile and Kconfig -----------------------------------------------------------


def modules_of(tree: Path, path: str) -> Iterator[Module]:
    """Yield the modules that a source file is built into.

    A header belongs to the source of its name, else to the only module of its folder.
    """
    file = PurePosixPath(path)
    for folder in [file.parent, *file.parent.parents][:3]:
        lists, configs = _objects(_text(tree / folder / "Makefile"))
        wanted = str(file.relative_to(folder).with_suffix(".o"))
        names = [name for name, parts in lists.items() if wanted in parts]
        if file.suffix not in _HEADS and not names and len(configs) == 1:
            names = list(configs)
        known = [name for name in names if name in configs]
        for name in known:
            prompt = _prompts(tree, folder).get(configs[name], "")
            yield Module(name=name, config=configs[name], prompt=printable(prompt))
        if known:
            return


def _objects(makefile: str) -> tuple[dict[str, set[str]], dict[str, str]]:
    """Return module -> its objects, and module -> its Kconfig symbol."""
    lists: dict[str, set[str]] = {}
    configs: dict[str, str] = {}
    for line in re.sub(r"\\\n", " ", makefile).split("\n"):
        found = _LINE.match(line.partition("#")[0].strip())
        if found is None:
            continue
        target, kind, words = found[1], found[2], found[3].split()
        objects = {word for word in words if word.endswith(".o")}
        if target != "obj":
            lists.setdefault(target, set()).update(objects)
            continue
        symbol = _CONFIG.search(kind)
        for one in sorted(objects) if symbol else ():
            name = one.removesuffix(".o")
            configs[name] = symbol[1] if symbol else ""
            lists.setdefault(name, set()).add(one)
    return lists, configs


def _prompts(tree: Path, folder: PurePosixPath) -> dict[str, str]:
    """Return Kconfig symbol -> prompt, of the folder and those above it."""
    found: dict[str, str] = {}
    for one in [folder, *folder.parents]:
        for symbol, prompt in _PROMPT.findall(_text(tree / one / "Kconfig")):
            found.setdefault(symbol, prompt)
    return found


# ---- MAINTAINERS --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    name: str
    lists: tuple[str, ...]
    files: tuple[str, ...]
    excluded: tuple[str, ...]
    names: tuple[str, ...]


def _sections(text: str) -> Iterator[_Rules]:
    """Yield every section that has file patterns."""
    for block in re.split(r"\n\s*\n", text):
        lines = block.strip("\n").split("\n")
        fields = [found for line in lines[1:] if (found := _FIELD.match(line))]
        if not fields or _FIELD.match(lines[0]):
            continue
        told: dict[str, list[str]] = {}
        for one in fields:
            told.setdefault(one[1], []).append(one[2].strip())
        if "F" in told or "N" in told:
            yield _Rules(
                name=printable(lines[0].strip()),
                lists=tuple(printable(x.split()[0]) for x in told.get("L", [])),
                files=tuple(told.get("F", [])),
                excluded=tuple(told.get("X", [])),
                names=tuple(told.get("N", [])),
            )


def _matching(sections: Sequence[_Rules], path: str) -> list[_Rules]:
    """Return the sections of a file, that of the deepest pattern first."""
    found = [(_depth(one, path), one) for one in sections]
    hits = [(depth, one) for depth, one in found if depth is not None]
    return [one for _, one in sorted(hits, key=lambda x: -x[0])]


def _depth(rules: _Rules, path: str) -> int | None:
    """Return how deep the best pattern of a section goes; None where none fits."""
    if any(_fits(one, path) for one in rules.excluded):
        return None
    depths = [
        one.count("/") + (one[-1:] != "/") for one in rules.files if _fits(one, path)
    ]
    depths += [0 for one in rules.names if _searched(one, path)]
    return max(depths, default=None)


def _fits(pattern: str, path: str) -> bool:
    if pattern.endswith("/"):
        count = pattern.count("/")
        top = "/".join(path.split("/")[:count]) + "/"
        return path.count("/") >= count and fnmatch.fnmatchcase(top, pattern)
    deep = pattern == "*" or pattern.count("/") == path.count("/")
    below = path.startswith(f"{pattern}/")
    return below or (deep and fnmatch.fnmatchcase(path, pattern))


def _searched(pattern: str, path: str) -> bool:
    try:
        return re.search(pattern, path) is not None
    except re.error:
        return False
