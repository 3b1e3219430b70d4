"""Tidy tables; the function's name is the grain: what one row is.

``labels`` holds a tuple of ``(name, value)`` pairs, sorted by name; rows of the whole
file have an empty one. Values are in the base unit of their metric.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from patchstudy.errors import StudyError
from patchstudy.loaders import LOADERS
from patchstudy.metrics import METRICS, Better, Kind, Metric, Scale, metric
from patchstudy.records import Measurement
from patchstudy.study import Design, Planned, Role, Run, Source, Study, parse_margin
from patchstudy.study.design import DEFAULT_MARGINS

Labels = tuple[tuple[str, str], ...]

RUN_KEYS: Final = ("device", "workload", "variant", "build", "boot", "block", "run")
RUN_COLUMNS: Final = (
    *RUN_KEYS, "name", "order", "timed", "tool", "place", "metric", "labels",
    "value", "exposure", "resolution", "path",
)  # fmt: skip
INTERVAL_COLUMNS: Final = (
    *RUN_KEYS, "name", "order", "tool", "place", "metric", "labels", "start_s",
    "end_s", "value",
)  # fmt: skip
UNIT_COLUMNS: Final = (
    "question", "device", "workload", "metric", "variant", "unit", "block", "order",
    "timed", "value", "exposure", "resolution", "runs", "path",
)  # fmt: skip
#: What a table of experimental units says in ``attrs["grain"]``; ``compare`` asks.
UNIT_GRAIN: Final = "experimental unit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One metric on one device and workload, as the study asks it.

    Attributes
    ----------
    labels, tool, place
        The one series of numbers that was chosen to answer it.
    problem
        Why none could be chosen; empty where one was.
    unit
        Level at which the units are counted: ``"build"``, ``"boot"`` or ``"run"``.
    """

    device: str
    workload: str
    planned: Planned
    role: Role
    labels: Labels
    tool: str
    place: str
    problem: str
    unit: str

    @property
    def key(self) -> str:
        """Short unique name: ``device/workload/metric[labels]``."""
        shown = ",".join(f"{k}={v}" for k, v in self.labels)
        name = self.planned.metric.name + (f"[{shown}]" if shown else "")
        return f"{self.device}/{self.workload}/{name}"


def per_interval(study: Study) -> pd.DataFrame:
    """One row per interval that a tool printed within a measuring run.

    Intervals of one run follow each other closely and are never replicates; this table
    is for figures and for checks inside a run.

    Returns
    -------
    pandas.DataFrame
        Columns ``INTERVAL_COLUMNS``; ``start_s`` and ``end_s`` in seconds from the
        start of the run; sorted as the runs are.
    """
    rows = [
        {
            **shared,
            "metric": one.metric,
            "labels": _labels(one),
            "start_s": one.start_s,
            "end_s": one.end_s,
            "value": one.value,
        }
        for shared, source in _sources(study)
        for one in source.capture.measurements
        if one.start_s is not None
    ]
    return _plain_text(pd.DataFrame(rows, columns=list(INTERVAL_COLUMNS)))


def per_run(study: Study) -> pd.DataFrame:
    """One row per run, metric, labels and source: the values of the whole run.

    Beside what the files say there are ``packet_rate`` (packets of an interface over
    the elapsed time of the same pair of snapshots), ``cpu_per_byte`` (busy CPU seconds
    a second over received payload bytes a second) and ``cpu_per_packet``, joined
    within the run.

    Returns
    -------
    pandas.DataFrame
        Columns ``RUN_COLUMNS``; ``order`` counts the runs of a device and workload in
        time, as far as ``timed`` says that their place in time is known; ``exposure``
        in packets; ``path`` is the raw file, relative to the study.
    """
    rows = [
        {**shared, **_whole_run(one)}
        for shared, source in _sources(study)
        for one in source.capture.measurements
        if one.start_s is None
    ]
    told = pd.DataFrame(rows, columns=list(RUN_COLUMNS))
    parts = [told, *(part for part in _derived(told, study) if not part.empty)]
    numbers = dict.fromkeys(("value", "exposure", "resolution"), float)
    return _plain_text(pd.concat(parts, ignore_index=True).astype(numbers))


def questions(runs: pd.DataFrame, design: Design) -> tuple[Question, ...]:
    """List what the study asks, and which series of numbers answers each.

    Declared metrics come first, in the order of ``study.toml``; then every metric that
    was measured and not declared, as a diagnostic, if one series of it stands out (of
    several interfaces none does; ``checks.unasked`` names those).

    Parameters
    ----------
    runs
        As ``per_run`` returns them.
    """
    keys = ["device", "workload", "metric"]
    places = runs.groupby(keys).indices
    measured: dict[tuple[str, str], set[str]] = {}
    for device, workload, name in runs[keys].drop_duplicates().itertuples(index=False):
        measured.setdefault((str(device), str(workload)), set()).add(str(name))
    asked = [
        _question(
            runs.iloc[places.get((*cell, planned.metric.name), [])],
            design,
            _blank(design, planned, *cell),
        )
        for cell, names in sorted(measured.items())
        for planned in _planned(names, design, *cell)
    ]
    asked.extend(_absent(asked, runs, design))
    ranks = {id(planned): rank for rank, planned in enumerate(design.metrics)}
    kept = [one for one in asked if not (one.problem and one.role is Role.DIAGNOSTIC)]
    return tuple(
        sorted(kept, key=lambda one: ranks.get(id(one.planned), len(design.metrics)))
    )


def per_unit(runs: pd.DataFrame, asked: Iterable[Question]) -> pd.DataFrame:
    """One row per question, variant and experimental unit.

    The value of a unit that holds several runs is their unweighted mean, on the log
    scale for metrics that are compared as ratios (STATISTICS: unit of analysis).
    Counts are divided by their exposure where it is known.

    Returns
    -------
    pandas.DataFrame
        Columns ``UNIT_COLUMNS``; ``attrs["grain"]`` is ``UNIT_GRAIN``.
    """
    parts = [_units(runs, question) for question in asked if not question.problem]
    empty = pd.DataFrame(columns=list(UNIT_COLUMNS))
    table = pd.concat(parts, ignore_index=True) if parts else empty
    table.attrs["grain"] = UNIT_GRAIN
    return table


def series(runs: pd.DataFrame, question: Question) -> pd.DataFrame:
    """Return the rows of ``per_run`` or ``per_interval`` that answer a question."""
    at = np.flatnonzero(runs["metric"].to_numpy() == question.planned.metric.name)
    for column in ("device", "workload", "tool", "place"):
        at = at[runs[column].to_numpy()[at] == getattr(question, column)]
    labels = runs["labels"].to_numpy()
    return runs.iloc[[one for one in at.tolist() if labels[one] == question.labels]]


# ---- rows of runs -------------------------------------------------------------------


def _plain_text(table: pd.DataFrame) -> pd.DataFrame:
    """Hold text as Python's own strings, which all rows of a run share.

    Arrow's strings are made anew for every comparison: ten times the CPU here.
    """
    text = table.columns[table.dtypes == "str"]
    return table.astype(dict.fromkeys(text, object))


def _sources(study: Study) -> Iterator[tuple[dict[str, Any], Source]]:
    orders = _orders(study.runs)
    for number, run in enumerate(study.runs):
        if not run.measuring:
            continue
        shared = {
            "device": run.device,
            "workload": run.workload,
            "variant": run.variant,
            "build": run.build,
            "boot": run.boot,
            "block": block_of(run, study.design),
            "run": run.run,
            "name": run.name,
            "order": orders[number],
            "timed": run.started_at is not None or run.position is not None,
        }
        for source in run.sources:
            origin = {
                "tool": source.capture.tool,
                "place": source.place,
                "path": study.path_of(source.capture),
            }
            yield {**shared, **origin}, source


def block_of(run: Run, design: Design) -> str:
    """Return the block of a run, empty where the study declares none."""
    if design.block in {"boot", "build"}:
        return str(getattr(run, design.block))
    return run.factors.get(design.block, str(run.facts.get(design.block, "")))


def _orders(runs: Iterable[Run]) -> dict[int, int]:
    """Number the measuring runs of each device and workload in time, from 1."""
    orders: dict[int, int] = {}
    counts: dict[tuple[str, str], int] = {}
    for number, run in enumerate(runs):
        if run.measuring:
            cell = (run.device, run.workload)
            counts[cell] = counts.get(cell, 0) + 1
            orders[number] = counts[cell]
    return orders


def _labels(one: Measurement) -> Labels:
    return tuple(sorted(one.labels.items()))


def _whole_run(one: Measurement) -> dict[str, object]:
    return {
        "metric": one.metric,
        "labels": _labels(one),
        "value": float(one.value),
        "exposure": np.nan if one.exposure is None else one.exposure,
        "resolution": np.nan if one.resolution is None else one.resolution,
    }


# ---- joined within the run ----------------------------------------------------------


def _derived(told: pd.DataFrame, study: Study) -> Iterator[pd.DataFrame]:
    rates = _packet_rates(told)
    yield rates
    capacity = _busy_cpus(told, study)
    if capacity.empty:
        return
    plain = told["labels"].map(len) == 0
    goodput = told[(told["metric"] == "throughput") & plain & (told["value"] > 0)]
    yield _cost(goodput.assign(value=goodput["value"] / 8), capacity, "cpu_per_byte")
    yield _cost(rates[rates["value"] > 0], capacity, "cpu_per_packet")


def _packet_rates(told: pd.DataFrame) -> pd.DataFrame:
    """Packets of each interface and direction over the elapsed time of the pair."""
    elapsed = told[(told["metric"] == "event:uptime") & (told["value"] > 0)]
    if elapsed.empty:
        return elapsed
    clocks = elapsed.groupby(list(RUN_KEYS))["place"].transform("size")
    elapsed = elapsed.assign(only=clocks == 1)[[*RUN_KEYS, "place", "value", "only"]]
    packets = told[told["metric"].isin(["event:rx_packets", "event:tx_packets"])]
    joined = packets.merge(elapsed, on=list(RUN_KEYS), suffixes=("", "_elapsed"))
    # of several clocks only that of the same machine counts
    joined = joined[joined["only"] | (joined["place"] == joined["place_elapsed"])]
    labels = [
        tuple(sorted([*labels, ("direction", name.removeprefix("event:")[:2])]))
        for labels, name in zip(joined["labels"], joined["metric"], strict=True)
    ]
    return joined.assign(
        metric="packet_rate",
        labels=pd.Series(labels, index=joined.index, dtype=object),
        value=joined["value"] / joined["value_elapsed"],
        resolution=1 / joined["value_elapsed"],
    )[list(RUN_COLUMNS)]


def _busy_cpus(told: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Mean number of busy CPUs of each run and place: busy share times number of CPUs.

    Where several tools watched one place it is the first in ``LOADERS``.
    """
    cpus = {
        (run.device, run.workload, run.name, source.capture.tool, source.place): (
            source.capture.facts["number_of_cpus"]
        )
        for run in study.runs
        for source in run.sources
        if "number_of_cpus" in source.capture.facts
    }
    plain = told["labels"].map(len) == 0
    busy = told[(told["metric"] == "cpu_busy") & plain]
    keys = busy[["device", "workload", "name", "tool", "place"]]
    counts = [cpus.get(key, np.nan) for key in keys.itertuples(index=False, name=None)]
    busy = busy.assign(
        value=busy["value"] * pd.Series(counts, index=busy.index, dtype=float),
        rank=busy["tool"].map(_rank),
    )
    best = busy.dropna(subset=["value"]).sort_values("rank", kind="stable")
    return best.drop_duplicates([*RUN_KEYS, "place"])[[*RUN_KEYS, "place", "value"]]


def _cost(moved: pd.DataFrame, busy: pd.DataFrame, name: str) -> pd.DataFrame:
    """Busy CPU seconds a second over what was moved a second, where the CPUs are."""
    joined = moved.merge(busy, on=list(RUN_KEYS), suffixes=("", "_busy"))
    joined = joined.drop_duplicates([*RUN_KEYS, "tool", "place_busy", "labels"])
    return joined.assign(
        metric=name,
        place=joined["place_busy"],
        value=joined["value_busy"] / joined["value"],
        exposure=np.nan,
        resolution=np.nan,
    )[list(RUN_COLUMNS)]


# ---- questions ----------------------------------------------------------------------


def _planned(
    measured: Set[str], design: Design, device: str, workload: str
) -> Iterator[Planned]:
    """Yield the metrics declared for a cell, then the others measured there."""
    declared = set()
    for planned in design.metrics:
        explicit = planned.workloads or _controlled(design, planned, device, workload)
        if _applies(design, planned, device, workload) and (
            explicit or planned.metric.name in measured
        ):
            declared.add(planned.metric.name)
            yield planned
    for name in METRICS:
        if name in measured and name not in declared:
            yield _diagnostic(name)


def _applies(design: Design, planned: Planned, device: str, workload: str) -> bool:
    if _controlled(design, planned, device, workload):
        return True
    right_device = not planned.devices or device in planned.devices
    return right_device and (not planned.workloads or workload in planned.workloads)


def _controlled(design: Design, planned: Planned, device: str, workload: str) -> bool:
    """Say whether a primary metric is asked here as a control."""
    controls = design.controls
    here = device in controls.devices or workload in controls.workloads
    return here and planned.role is Role.PRIMARY and not planned.where


def _absent(
    asked: Iterable[Question], runs: pd.DataFrame, design: Design
) -> Iterator[Question]:
    """Yield the declared metrics that decide and that no run of a device answers.

    A metric is asked for on every device that was measured, or that it or the study
    names, until one of these has it on the workload.
    """
    found = [(one.planned, one.device, one.workload) for one in asked]
    measured = set(runs["device"])
    for planned in design.metrics:
        if planned.role not in {Role.PRIMARY, Role.GUARD}:
            continue
        devices = planned.devices or sorted(measured.union(design.devices))
        for workload in planned.workloads or ("any workload",):
            having = {
                device
                for one, device, where in found
                if one is planned and (not planned.workloads or where == workload)
            }
            named = {*planned.devices, *(set(design.devices) - measured)}
            for device in devices:
                if device not in having and (not having or device in named):
                    blank = _blank(design, planned, device, workload)
                    yield replace(blank, problem=_why_absent(runs, workload))


def _why_absent(runs: pd.DataFrame, workload: str) -> str:
    known = sorted(set(runs["workload"]))
    if workload in {*known, "any workload"}:
        return "not measured"
    return f"no run has the workload {workload!r}; there is {', '.join(known)}"


def _diagnostic(name: str) -> Planned:
    quantity = metric(name)
    text = DEFAULT_MARGINS[quantity.kind]
    return Planned(
        metric=quantity,
        role=Role.DIAGNOSTIC,
        workloads=(),
        devices=(),
        where={},
        margin=parse_margin(text, quantity, declared=False),
        ceiling=None,
        expect="",
        required=False,
    )


def _question(here: pd.DataFrame, design: Design, blank: Question) -> Question:
    """Choose which of the numbers of a metric in a cell answer its question."""
    if here.empty:
        return blank
    columns = (here[name].to_numpy() for name in ("tool", "place", "labels"))
    chosen = _choose(Counter(zip(*columns, strict=True)), blank.planned.where)
    if isinstance(chosen, str):
        return replace(blank, problem=chosen)
    tool, place, labels = chosen
    found = replace(blank, tool=tool, place=place, labels=labels, problem="")
    return replace(found, unit=unit_level(series(here, found), design))


def _blank(design: Design, planned: Planned, device: str, workload: str) -> Question:
    """Return the question before a series of numbers was chosen."""
    controlled = _controlled(design, planned, device, workload)
    return Question(
        device=device,
        workload=workload,
        planned=planned,
        role=Role.CONTROL if controlled else planned.role,
        labels=(),
        tool="",
        place="",
        problem="not measured",
        unit=design.unit,
    )


def _choose(
    found: Mapping[tuple[str, str, Labels], int], where: Mapping[str, str]
) -> tuple[str, str, Labels] | str:
    """Choose one series of numbers, or say why none can be.

    Among those that fit ``where`` the one with the fewest labels; where several tools
    give the same number, the one present in most runs, then the first in ``LOADERS``.
    One tool in several places (router, client) gives numbers that are not the same.

    Parameters
    ----------
    found
        Tool, place and labels -> how many values there are.
    """
    options = [
        (tool, place, labels)
        for tool, place, labels in sorted(found)
        if where.items() <= {**dict(labels), "tool": tool, "place": place}.items()
    ]
    if not options:
        wanted = ", ".join(f"{k}={v}" for k, v in where.items())
        return f"no number has {wanted}; there are {_listed(found)}"
    fewest = min(len(labels) for _, _, labels in options)
    options = [one for one in options if len(one[2]) == fewest]
    if len({labels for _, _, labels in options}) > 1:
        return f"ambiguous; choose one with where = {{...}}: {_listed(options)}"
    best = min(options, key=lambda one: (-found[one], _rank(one[0]), one[1]))
    places = [one for one in options if one[0] == best[0]]
    if len(places) > 1:
        return f"ambiguous; choose one with where = {{...}}: {_listed(places)}"
    return best


def _rank(tool: str) -> int:
    """Return the place of a tool in ``LOADERS``."""
    names = list(LOADERS)
    return names.index(tool) if tool in names else len(names)


def _listed(options: Iterable[tuple[str, str, Labels]]) -> str:
    shown = sorted(
        {
            " ".join(
                [
                    *(f"{k}={v}" for k, v in labels),
                    f"tool={tool}",
                    *([f"place={place}"] if place else []),
                ]
            )
            for tool, place, labels in options
        }
    )
    more = f" and {len(shown) - 6} more" if len(shown) > 6 else ""
    return "; ".join(shown[:6]) + more


# ---- units --------------------------------------------------------------------------


def unit_level(rows: pd.DataFrame, design: Design) -> str:
    """Return the level at which units are counted.

    It is the declared one, unless no blocks pair the variants: then runs of one boot
    (or build) are not independent, and the highest level is counted of which both
    variants have two or more (STATISTICS 3.1). Boots of two variants that have the
    same number may be one boot or two; counting boots is right in both cases.
    """
    if design.unit != "run":
        return design.unit
    sides = [rows[rows["variant"] == x] for x in (design.baseline, design.patched[0])]
    both = set.intersection(*(set(side["block"]) for side in sides)) - {""}
    if len(both) >= 2:
        return "run"
    for level in ("build", "boot"):
        names = [set(side[level]) for side in sides]
        if all("" not in one and len(one) >= 2 for one in names):
            return level
    return "run"


def _units(runs: pd.DataFrame, question: Question) -> pd.DataFrame:
    rows = series(runs, question)
    quantity = question.planned.metric
    value = rows["value"]
    if quantity.kind is Kind.COUNT:
        value = value / rows["exposure"].where(rows["exposure"] > 0)
        if value.isna().any():
            value = rows["value"]
    keys = {"build": ["build"], "boot": ["build", "boot"], "run": list(RUN_KEYS[3:])}
    level = ["variant", *keys[question.unit]]
    _require_one_each(rows, question)
    if question.unit == "run":  # each is a unit of its own
        return _of_question(
            rows.assign(value=value, runs=1, unit=rows["name"]), question
        )
    rows = rows.assign(value=value)
    # a unit that reaches over several blocks lies in none of them
    alone = rows.groupby(level)["block"].transform("nunique") == 1
    rows = rows.assign(unit_block=rows["block"].where(alone, ""))
    grouped = rows.groupby(level, sort=False)
    table = grouped.agg(
        value=("value", _mean_of(quantity, rows)),
        exposure=("exposure", lambda x: x.sum(min_count=1)),
        resolution=("resolution", "max"),
        order=("order", "min"),
        timed=("timed", "all"),
        runs=("value", "size"),
        unit=("name", "first"),
        path=("path", "first"),
        block=("unit_block", "first"),
    )
    table = table.reset_index([name for name in level if name != "block"])
    return _of_question(table, question)


def _require_one_each(rows: pd.DataFrame, question: Question) -> None:
    keys = [*zip(*(rows[name].to_numpy() for name in RUN_KEYS), strict=True)]
    if len(set(keys)) < len(keys):
        (twice, _), *_ = Counter(keys).most_common(1)
        example = rows["name"].iloc[keys.index(twice)]
        raise StudyError(
            f"{question.key}: two values for {example}; are two runs under one name?"
        )


def _of_question(table: pd.DataFrame, question: Question) -> pd.DataFrame:
    table = table.assign(
        question=question.key,
        device=question.device,
        workload=question.workload,
        metric=question.planned.metric.name,
    )
    at = np.argsort(table["order"].to_numpy(), kind="stable")
    return table[list(UNIT_COLUMNS)].iloc[at].reset_index(drop=True)


def _mean_of(
    quantity: Metric, rows: pd.DataFrame
) -> str | Callable[[pd.Series], float]:
    """Choose how the runs of a unit become its value.

    The mean, on the scale of the analysis. Of pass or fail the worst run: a unit passes
    where all of its runs do. Of exact numbers the first, if all others are the same;
    else the mean, which is none of them.
    """
    if quantity.kind is Kind.PASSFAIL:
        return "min" if quantity.better is Better.HIGHER else "max"
    log = quantity.scale is Scale.RATIO and bool((rows["value"] > 0).all())
    return _geometric if log else "mean"


def _geometric(values: pd.Series) -> float:
    if len(values) == 1:
        return float(values.iloc[0])
    return float(np.exp(np.log(values).mean()))
