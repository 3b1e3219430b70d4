"""Read a TOML table key by key, and name every mistake with its file and key."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from patchstudy.errors import StudyError, printable
from patchstudy.tree import MAX_BYTES, no_file


def declared(path: Path) -> bytes:
    """Return the bytes of ``study.toml``, ``plan.json`` or ``runs.csv``.

    Raises
    ------
    FileNotFoundError
        If there is none.
    StudyError
        If it cannot be read, is no plain file of the study, or larger than
        ``MAX_BYTES``.
    """
    if reason := no_file(path.parent, path.name):
        raise StudyError(f"{path}: {reason}")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror})") from error
    if len(data) > MAX_BYTES:
        raise StudyError(f"{path}: larger than {MAX_BYTES // 2**20} MiB; is it yours?")
    return data


class Keys:
    """One table of a TOML file; every key must be asked for.

    Asking for a key that is missing or of the wrong type notes the mistake and returns
    a harmless value, so that all mistakes of a file are found at once. ``finish``
    raises them.
    """

    def __init__(
        self,
        path: Path,
        table: Mapping[str, Any],
        prefix: str = "",
        problems: list[str] | None = None,
    ) -> None:
        self._path = path
        self._table = table
        self._prefix = prefix
        self._asked: set[str] = set()
        self._problems: list[str] = [] if problems is None else problems

    def wrong(self, key: str, problem: str) -> None:
        """Note a mistake of one key."""
        line = f"{self._path}: {self._prefix}{key}: {problem}"
        self._problems.append(printable(line))

    def text(self, key: str, *, default: str | None = None) -> str:
        """Return a string."""
        value = self._value(key, default)
        if not isinstance(value, str):
            self.wrong(key, f"must be a text in quotes, is {value!r}")
            return ""
        return value

    def texts(
        self, key: str, *, default: tuple[str, ...] | None = None
    ) -> tuple[str, ...]:
        """Return a list of strings."""
        value = self._value(key, default)
        if not isinstance(value, (list, tuple)) or not all(
            isinstance(one, str) for one in value
        ):
            self.wrong(key, f"must be a list of texts, is {value!r}")
            return ()
        return tuple(value)

    def text_or_texts(self, key: str) -> tuple[str, ...]:
        """Return strings given as one or as a list; empty where the key is absent."""
        if isinstance(self._table.get(key), str):
            return (self.text(key),)
        return self.texts(key, default=())

    def fraction(self, key: str, *, default: float) -> float:
        """Return a number between 0 and 1."""
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.wrong(key, f"must be a number, is {value!r}")
            return default
        if not 0 < value < 1:
            self.wrong(key, f"must lie between 0 and 1, is {value!r}")
            return default
        return float(value)

    def flag(self, key: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            self.wrong(key, f"must be true or false, is {value!r}")
            return default
        return value

    def choice(
        self, key: str, choices: Sequence[str], *, default: str | None = None
    ) -> str:
        """Return one of the given strings."""
        value = self._value(key, default)
        if value in choices:
            return str(value)
        if key in self._table:
            known = ", ".join(repr(one) for one in choices if one)
            self.wrong(key, f"must be one of {known}, is {value!r}")
        return choices[0]

    def table(self, key: str) -> "Keys":
        """Return an inner table; empty where the key is absent."""
        value = self._value(key, {})
        if not isinstance(value, dict):
            self.wrong(key, f"must be a table [{key}], is {value!r}")
            value = {}
        return Keys(self._path, value, f"{self._prefix}{key}.", self._problems)

    def tables(self, key: str) -> list["Keys"]:
        """Return the tables of a list; empty where the key is absent."""
        value = self._value(key, [])
        if not isinstance(value, list) or not all(
            isinstance(one, dict) for one in value
        ):
            self.wrong(key, f"must be a list of tables [[{key}]], is {value!r}")
            value = []
        return [
            Keys(self._path, one, f"{self._prefix}{key}[{number}].", self._problems)
            for number, one in enumerate(value, start=1)
        ]

    def text_table(self, key: str) -> dict[str, str]:
        """Return an inner table of strings; empty where the key is absent."""
        inner = self.table(key)
        return {name: inner.text(name) for name in inner.names()}

    def names(self) -> list[str]:
        """Return the keys of the table, in the order of the file."""
        return list(self._table)

    def finish_table(self) -> None:
        """Note every key that nobody asked for."""
        for key in self._table.keys() - self._asked:
            near = difflib.get_close_matches(key, self._asked, n=1)
            hint = (
                f"did you mean {near[0]!r}?"
                if near
                else "known keys: " + ", ".join(sorted(self._asked))
            )
            self.wrong(key, f"unknown key; {hint}")

    def finish(self) -> None:
        """Raise all mistakes found.

        Raises
        ------
        StudyError
            One line a mistake, sorted.
        """
        self.finish_table()
        if self._problems:
            raise StudyError("\n".join(sorted(set(self._problems))))

    def _value(self, key: str, default: object) -> object:
        self._asked.add(key)
        if key in self._table:
            return self._table[key]
        if default is None:
            self.wrong(key, "is missing")
            return ""
        return default
