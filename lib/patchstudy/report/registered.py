"""What papermill finds under the entry point ``patchstudy-warm``.

papermill loads its entry points while it is imported itself, and ``engine`` imports
papermill: this module imports neither before the engine is used.
"""

from typing import Any


class WarmEngine:
    """Stands for ``engine.WarmEngine`` until papermill uses it."""

    @classmethod
    def execute_notebook(cls, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - papermill's
        """Run a notebook; see ``papermill.engines.Engine.execute_notebook``."""
        return _engine().execute_notebook(*args, **kwargs)

    @classmethod
    def nb_kernel_name(cls, *args: Any, **kwargs: Any) -> str:  # noqa: ANN401
        """Return the kernel that a notebook names."""
        return _engine().nb_kernel_name(*args, **kwargs)

    @classmethod
    def nb_language(cls, *args: Any, **kwargs: Any) -> str:  # noqa: ANN401
        """Return the language that a notebook names."""
        return _engine().nb_language(*args, **kwargs)


def _engine() -> Any:  # noqa: ANN401 - a class of papermill's kind
    from patchstudy.report.engine import WarmEngine as Engine  # noqa: PLC0415 - see above

    return Engine
