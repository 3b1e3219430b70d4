"""The design of a study, as declared in ``study.toml`` before the data were seen."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final

from patchstudy.errors import StudyError, printable
from patchstudy.metrics import Better, Kind, Metric, Scale, metric
from patchstudy.study.claimed import Claim, read_claim
from patchstudy.study.keys import Keys, declared
from patchstudy.units import fitting, to_base

#: Key of a device that is another one in a different setting.
SAME_AS: Final = "same_as"
LAYOUT: Final = "{device}/{variant}/boot-{boot}/{purpose}-{run}/{workload}.{rest}"

#: Smallest change that matters where the study declares none: proposals, to be
#: confirmed on A/A data; a study should declare its own.
DEFAULT_MARGINS: Final[Mapping[Kind, str]] = {
    Kind.RATE: "2 %",
    Kind.LATENCY: "5 %",
    Kind.COST: "5 %",
    Kind.SHARE: "2 pp",
    Kind.PROPORTION: "0.1 pp",
    Kind.COUNT: "0.1 pp",
    Kind.SIGNED: "2 %",
    Kind.PASSFAIL: "10 pp",
    Kind.EXACT: "2 %",
}


class Role(StrEnum):
    """What a metric is for in this study."""

    PRIMARY = "primary"  # answers the question
    GUARD = "guard"  # must not get worse
    MECHANISM = "mechanism"  # explains
    CONTROL = "control"  # must not change: the patch does nothing there
    DIAGNOSTIC = "diagnostic"  # looked at, not decided on


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """The smallest change that matters, or the largest harm that is accepted.

    Attributes
    ----------
    value
        With scale ``ratio`` a fraction (0.01 is one percent), with ``difference`` in
        the metric's base unit (for a count: per packet).
    scale
        Whether it is relative or absolute.
    text
        As the study wrote it.
    declared
        False where it is one of ``DEFAULT_MARGINS``.
    """

    value: float
    scale: Scale
    text: str
    declared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One declared metric.

    Attributes
    ----------
    metric
        What is measured.
    role
        What it is for.
    workloads, devices
        Where it applies; empty means on every one that has it.
    where
        Labels that choose one number where a file holds several.
    margin
        Smallest change that matters.
    ceiling
        Value that nothing behind the device can exceed, in the base unit, or None.
    expect
        ``"lower"`` or ``"higher"`` for a mechanism; ``"same"`` for a primary metric
        of a patch that claims to change nothing; else empty.
    required
        Whether a guard that was not measured or not resolved blocks acceptance.
    """

    metric: Metric
    role: Role
    workloads: tuple[str, ...]
    devices: tuple[str, ...]
    where: Mapping[str, str]
    margin: Margin
    ceiling: float | None
    expect: str
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """Workloads and devices on which the patch must change nothing."""

    workloads: tuple[str, ...]
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How the study was planned: what is compared, within what, and what counts.

    Attributes
    ----------
    question, title
        What the study asks, in one sentence; and its name for people, or empty.
    baseline, patched
        Names of the variants; the first of ``patched`` is judged against baseline.
    placebo, base2
        Those of ``patched`` that differ from the baseline in code layout only, and in
        nothing (a second copy of it); empty where there is none.
    unit
        ``"build"``, ``"boot"`` or ``"run"``: the level at which variants took turns.
    block
        Factor in which they took turns (``"boot"``, ``"block"``), or empty.
    treatment
        Run facts by which the variants differ on purpose (``"build_id"``).
    not_measured
        What was left out, in the author's words, for the report.
    noise
        Relative path of the study that tells the noise of these devices, or empty.
    digest
        sha256 of ``study.toml``: changing a margin later changes it.
    """

    question: str
    title: str
    baseline: str
    patched: tuple[str, ...]
    placebo: str
    base2: str
    unit: str
    block: str
    alpha: float
    layout: str
    metrics: tuple[Planned, ...]
    controls: Controls
    devices: Mapping[str, Mapping[str, str]]
    claims: tuple[Claim, ...]
    treatment: tuple[str, ...]
    setting: str
    not_measured: tuple[str, ...]
    noise: str
    digest: str

    @property
    def variants(self) -> tuple[str, ...]:
        """All variants, baseline first."""
        return (self.baseline, *self.patched)

    def machine(self, device: str) -> str:
        """Return the device that a device is another setting of, else itself."""
        return self.devices.get(device, {}).get(SAME_AS, device)

    def facts(self, device: str) -> list[str]:
        """Return what the study says of a device, in words."""
        said = self.devices.get(device, {})
        return [
            f"another setting of {text}" if name == SAME_AS else text
            for name, text in said.items()
        ]


def read_design(folder: Path) -> Design:
    """Read and check ``study.toml``.

    Raises
    ------
    StudyError
        One line for every mistake, each with the file, the key and what would be right.
    """
    path = folder / "study.toml"
    try:
        data = declared(path)
        table = tomllib.loads(data.decode("utf-8"))
    except FileNotFoundError:
        raise StudyError(f"{path}: no such file; a study needs one") from None
    except (ValueError, RecursionError) as error:  # also a number of 5000 digits
        raise StudyError(f"{path}: not TOML ({printable(str(error))})") from error
    return _design(Keys(path, table), digest=sha256(data).hexdigest())


def _design(keys: Keys, *, digest: str) -> Design:
    placebo, base2 = (keys.text(name, default="") for name in ("placebo", "base2"))
    design = Design(
        question=keys.text("question"),
        title=printable(" ".join(keys.text("title", default="").split())),
        baseline=keys.text("baseline", default="baseline"),
        patched=_with(keys.texts("patched", default=("patched",)), placebo, base2),
        placebo=placebo,
        base2=base2,
        unit=keys.choice("unit", ("build", "boot", "run")),
        block=keys.text("block", default=""),
        alpha=keys.fraction("alpha", default=0.05),
        layout=_layout(keys),
        metrics=tuple(_planned(one) for one in keys.tables("metrics")),
        controls=_controls(keys),
        devices=_devices(keys),
        claims=tuple(read_claim(one) for one in keys.tables("claims")),
        treatment=keys.texts("treatment", default=()),
        setting=keys.text("setting", default=""),
        not_measured=keys.texts("not_measured", default=()),
        noise=_noise(keys),
        digest=digest,
    )
    _whole(keys, design)
    keys.finish()
    return design


def _with(patched: tuple[str, ...], *others: str) -> tuple[str, ...]:
    """Add the variants that are named by another key alone."""
    return (*patched, *(one for one in others if one and one not in patched))


def design_of_files(variants: tuple[str, ...], *, metric: str, margin: str) -> Design:
    """Make the design of a comparison of bare files: runs, no blocks, one metric.

    Raises
    ------
    StudyError
        If the metric is not known or the margin does not fit it.
    """
    table = {
        "question": f"Does {metric} differ between the two sets of files?",
        "unit": "run",
        "baseline": variants[0],
        "patched": list(variants[1:]),
        "metrics": [{"name": metric, "role": "primary"}],
    }
    if margin:
        table["metrics"][0]["margin"] = margin
    return _design(Keys(Path("compare"), table), digest="")


def parse_margin(text: str, quantity: Metric, *, declared: bool = True) -> Margin:
    """Read a margin such as ``"1 %"``, ``"0.5 pp"`` or ``"20 us"``.

    Raises
    ------
    ValueError
        If it is no positive number with a unit, or the unit does not fit the metric.
    """
    match = re.fullmatch(r"\+?\s*(\d+(?:\.\d+)?)(?![\d.])\s*(\S+)", text.strip())
    if match is None or float(match[1]) <= 0:
        raise ValueError(f"{text!r} is no margin; write it as '1 %' or '0.5 pp'")
    number, unit = float(match[1]), match[2]
    if unit == "%":
        return Margin(
            value=number / 100, scale=Scale.RATIO, text=text, declared=declared
        )
    value, base = to_base(number, unit)
    if base != quantity.unit:
        units = ", ".join(dict.fromkeys(["%", *fitting(quantity.unit)]))
        raise ValueError(f"{text!r} does not fit {quantity.name}; give it in {units}")
    return Margin(value=value, scale=Scale.DIFFERENCE, text=text, declared=declared)


def _layout(keys: Keys) -> str:
    layout = keys.text("layout", default=LAYOUT)
    names = re.findall(r"{([^{}]*)}", layout)
    missing = [name for name in ("device", "variant") if name not in names]
    if missing:
        keys.wrong("layout", f"has no {{{missing[0]}}}; as in {LAYOUT!r}")
    if len(set(names)) != len(names):
        keys.wrong("layout", "names a factor twice")
    for name in names:
        if not name.isidentifier():
            keys.wrong("layout", f"{{{name}}} is no name; use letters and _")
    return layout


def _planned(keys: Keys) -> Planned:
    quantity = _metric(keys)
    role = Role(
        keys.choice("role", [role.value for role in Role if role is not Role.CONTROL])
    )
    planned = Planned(
        metric=quantity,
        role=role,
        workloads=keys.text_or_texts("workload"),
        devices=keys.text_or_texts("device"),
        where=keys.text_table("where"),
        margin=_margin(keys, quantity),
        ceiling=_ceiling(keys, quantity),
        expect=keys.choice("expect", ("lower", "higher", "same", ""), default=""),
        required=keys.flag("required", default=True),
    )
    keys.finish_table()
    return planned


def _metric(keys: Keys) -> Metric:
    name = keys.text("name")
    kind = keys.choice("kind", _DECLARED_KINDS, default="")
    better = keys.choice("better", ("higher", "lower", ""), default="")
    try:
        found = metric(name)
    except ValueError as error:
        keys.wrong("name", str(error))
        return metric("throughput")
    if kind == Kind.PASSFAIL and found.unit != "1":
        keys.wrong("kind", f"'passfail' is of 0 and 1; {name} is in {found.unit}")
        return found
    if better and found.better not in {Better.NEITHER, better}:
        keys.wrong("better", f"{name} is known: {found.better} is better")
    return replace(
        found,
        kind=Kind(kind) if kind else found.kind,
        better=Better(better) if better else found.better,
    )


#: Kinds that a study may declare in place of that of the metric (STATISTICS 3.1).
_DECLARED_KINDS: Final = ("signed", "passfail", "exact", "")


def _margin(keys: Keys, quantity: Metric) -> Margin:
    text = keys.text("margin", default="")
    default = parse_margin(DEFAULT_MARGINS[quantity.kind], quantity, declared=False)
    if not text:
        return default
    try:
        return parse_margin(text, quantity)
    except ValueError as error:
        keys.wrong("margin", str(error))
        return default


def _ceiling(keys: Keys, quantity: Metric) -> float | None:
    text = keys.text("ceiling", default="")
    if not text:
        return None
    number, _, unit = text.strip().partition(" ")
    try:
        value, base = to_base(float(number), unit)
    except ValueError as error:
        keys.wrong("ceiling", f"{text!r} is no value with a unit ({error})")
        return None
    if base != quantity.unit:
        keys.wrong("ceiling", f"{text!r} does not fit the unit {quantity.unit!r}")
    return value


def _controls(keys: Keys) -> Controls:
    inner = keys.table("controls")
    controls = Controls(
        workloads=inner.text_or_texts("workload"),
        devices=inner.text_or_texts("device"),
    )
    inner.finish_table()
    return controls


def _devices(keys: Keys) -> Mapping[str, Mapping[str, str]]:
    inner = keys.table("devices")
    devices = {name: inner.text_table(name) for name in inner.names()}
    own = [name for name, facts in devices.items() if SAME_AS not in facts]
    for name, facts in devices.items():
        number, _, unit = facts.get("link", "1 bit/s").partition(" ")
        try:
            to_base(float(number), unit)
        except ValueError as error:
            inner.wrong(f"{name}.link", f"must be like '1 Gbit/s' ({error})")
        if SAME_AS in facts and facts[SAME_AS] not in own:
            inner.wrong(
                f"{name}.{SAME_AS}",
                f"must name another device of this study, without {SAME_AS}",
            )
    return devices


def _noise(keys: Keys) -> str:
    if "noise" not in keys.names():
        return ""
    inner = keys.table("noise")
    told = inner.text("study")
    if PurePosixPath(told).is_absolute():
        inner.wrong("study", f"{told!r} is no relative path; as in '../same-module'")
    inner.finish_table()
    return told


def _whole(keys: Keys, design: Design) -> None:
    """Check what concerns several keys at once."""
    if not design.patched:
        keys.wrong("patched", "names no variant; give at least one")
    if len(set(design.patched)) != len(design.patched):
        keys.wrong("patched", "names a variant twice")
    if design.baseline in design.patched:
        keys.wrong("patched", f"{design.baseline!r} is the baseline too")
    if not any(one.role is Role.PRIMARY for one in design.metrics):
        keys.wrong("metrics", "none has role = 'primary'; one must answer the question")
    _copies(keys, design)
    _claimed(keys, design)
    if design.block == design.unit:
        keys.wrong("block", f"{design.block!r} is the unit; units are inside blocks")
    seen: set[tuple[object, ...]] = set()
    for one in design.metrics:
        key = (one.metric.name, one.workloads, one.devices, _frozen(one.where))
        if key in seen:
            keys.wrong("metrics", f"{one.metric.name!r} is declared twice")
        seen.add(key)


def _copies(keys: Keys, design: Design) -> None:
    """Check that what shows noise is not what is judged."""
    for key, name in (("placebo", design.placebo), ("base2", design.base2)):
        if name and name == design.patched[0]:
            keys.wrong(key, f"{name!r} is the first of patched, which is judged")
    if design.placebo and design.placebo == design.base2:
        keys.wrong("base2", f"{design.base2!r} is the placebo too")


def _claimed(keys: Keys, design: Design) -> None:
    """Check that claims speak of variants that are compared."""
    for number, one in enumerate(design.claims, start=1):
        if one.variant and one.variant not in design.patched:
            known = ", ".join(design.patched)
            keys.wrong(f"claims[{number}].variant", f"{one.variant!r} is not {known}")


def _frozen(where: Mapping[str, str]) -> Sequence[tuple[str, str]]:
    return tuple(sorted(where.items()))
