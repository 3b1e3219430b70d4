"""How far a batch is: a bar on a terminal, one line a study elsewhere."""

import sys
from collections.abc import Callable
from shutil import get_terminal_size
from types import TracebackType
from typing import Any

from patchstudy.errors import printable
from patchstudy.report.batch import Outcome


class Progress:
    """Shows the outcomes of a batch on standard error as they become known.

    Parameters
    ----------
    total
        Number of studies.
    quiet
        Show nothing.
    """

    def __init__(self, total: int, *, quiet: bool) -> None:
        self._total, self._quiet = total, quiet
        self._made = self._kept = self._failed = 0
        self._bar: Any = None

    def __enter__(self) -> Callable[[Outcome], None]:
        """Return what is to be told each outcome."""
        if not self._quiet and sys.stderr.isatty():
            from tqdm import tqdm  # noqa: PLC0415 - on a terminal only

            size = get_terminal_size()  # 80 x 24 where a terminal does not tell
            self._bar = tqdm(
                total=self._total,
                unit="study",
                file=sys.stderr,
                ncols=size.columns,
                nrows=size.lines,
                smoothing=0,  # a mean over all: studies differ
                bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}"
                "{postfix}]",
            )
        return self._tell

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()

    def _tell(self, one: Outcome) -> None:
        self._failed += not one.ok
        self._kept += not one.made
        self._made += one.made and not one.error
        if self._bar is not None:
            self._bar.set_postfix_str(
                f"{self._made} made, {self._kept} kept, {self._failed} failed, "
                f"last {printable(one.study)}",
                refresh=False,
            )
            self._bar.update()
        elif not self._quiet:
            sys.stderr.write(f"{printable(one.study)}: {_line(one)}\n")
            sys.stderr.flush()


def _line(one: Outcome) -> str:
    if one.error:
        return "failed"
    return one.decision if one.made else f"{one.decision} (up to date)"
