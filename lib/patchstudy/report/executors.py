"""Where the tasks of a batch are done: here, or by the workers of a Dask cluster.

A task is a plain function of plain data (``make.report``), so that any
``concurrent.futures.Executor`` can do it; none is written here.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import (
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    as_completed,
)
from dataclasses import replace
from typing import Final

from patchstudy.errors import StudyError
from patchstudy.report import engine, fresh, make
from patchstudy.report.batch import Order, Outcome, Task

LOCAL: Final = "local"
DASK: Final = "dask://"
_PATIENCE_S: Final = 30


def run(tasks: Sequence[Task], order: Order) -> Iterator[Outcome]:
    """Yield the outcome of each task as soon as it is known.

    Stopped half-way, by a Ctrl-C or by whoever takes the outcomes, it begins no other
    task and ends those that run; finished reports stay as they are.

    Raises
    ------
    StudyError
        If there is no such executor, or its cluster cannot be reached.
    """
    if order.executor == LOCAL:
        with ThreadPoolExecutor(max_workers=order.jobs) as pool:
            try:
                yield from _outcomes(pool, tasks)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                engine.stop()
                raise
    elif order.executor.startswith(DASK):
        yield from _on_dask(tasks, order.executor.removeprefix(DASK))
    else:
        raise StudyError(
            f"no executor {order.executor!r}; give local or dask://HOST:PORT"
        )


def _outcomes(
    pool: Executor, tasks: Sequence[Task], lost: tuple[type[Exception], ...] = ()
) -> Iterator[Outcome]:
    """Yield outcomes as they become known; a task whose worker is lost has failed."""
    waiting: dict[Future[Outcome], Task] = {
        pool.submit(_done if lost else make.report, task): task for task in tasks
    }
    for done in as_completed(waiting):
        try:
            yield done.result()
        except lost as error:
            reason = f"its worker was lost, several times ({type(error).__name__})"
            study = waiting[done].study
            yield Outcome(
                study=study, decision="", error=f"{study}: {reason}", unread=()
            )


def _on_dask(tasks: Sequence[Task], address: str) -> Iterator[Outcome]:
    try:
        import distributed  # noqa: PLC0415 - an extra
    except ImportError as error:
        problem = "dask:// needs distributed; pip install 'patchstudy[dask]'"
        raise StudyError(problem) from error
    try:
        client = distributed.Client(address, timeout=_PATIENCE_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise StudyError(f"dask://{address}: no scheduler answers there") from error
    lost = (distributed.KilledWorker, CancelledError)
    with client, client.get_executor(pure=False) as pool:
        yield from _outcomes(pool, [_absolute(task) for task in tasks], lost)


def _absolute(task: Task) -> Task:
    """Return the task as a worker finds it that was started in another folder."""
    order = replace(
        task.order,
        out=task.order.out.resolve(),
        parsed=task.order.parsed and task.order.parsed.resolve(),
        notebook=task.order.notebook.resolve(),
        added=tuple(one.resolve() for one in task.order.added),
    )
    return replace(task, folder=task.folder.resolve(), order=order)


def _done(task: Task) -> Outcome:
    """Do a task on another machine, where it would come out the same."""
    order = task.order
    here = fresh.settings(order.notebook, order.formats, order.added)
    for name, wanted in task.settings.items():
        if name in here and here[name] != wanted:
            problem = f"the worker has another {name}: {here[name]}, not {wanted}"
            return Outcome(
                study=task.study,
                decision="",
                error=f"{task.study}: {problem}; install the same on all",
                unread=(),
            )
    return make.report(task)
