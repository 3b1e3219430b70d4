"""Make what ``docs/statistics.md`` shows: ``python benchmarks/statistics_figures.py``.

Figures come from the shipped studies, the table of caveats from the source of the
checks. The same input gives the same bytes. ``tests/test_statistics_docs.py`` compares.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

import numpy as np
import pandas as pd

from patchstudy import checks, figures
from patchstudy.findings import Assessment, assess
from patchstudy.metrics import Scale
from patchstudy.study import Role, open_study
from patchstudy.verdicts import Finding

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "statistics.md"
FOLDER: Final = ROOT / "docs" / "figures"
BEGIN: Final = "<!-- caveats: made by benchmarks/statistics_figures.py -->"
END: Final = "<!-- end of caveats -->"

#: Name of a figure -> study and workload of which every run is drawn.
RUNS: Final = {
    "runs-effect": ("qmi_wwan/qmap-headroom", "tcp-egress80"),
    "runs-same": ("qmi_wwan/same-module", "tcp-egress80"),
    "runs-sequential": ("qmi_wwan/same-module-sequential", "tcp-egress80"),
    "runs-noisy": ("veth/txqueuelen", "tcp"),
}
#: Studies whose primary changes stand in one figure: one of each verdict.
VERDICTS: Final = (
    "qmi_wwan/qmap-headroom",
    "qmi_wwan/same-module",
    "qmi_wwan/tx-skb-orphan",
    "qmi_wwan/same-module-sequential",
    "veth/txqueuelen",
)
GUARDS: Final = "qmi_wwan/qmap-headroom"


# ---- figures ------------------------------------------------------------------------


def assessed(name: str) -> Assessment:
    """Assess a shipped study."""
    return assess(open_study(ROOT / "data" / name))


def drawn(
    of: Callable[[str], Assessment] = assessed,
) -> Iterator[tuple[str, bytes]]:
    """Every figure of the page: name and SVG; ``of`` assesses a shipped study."""
    for name, (study, workload) in RUNS.items():
        yield name, every_run(of(study), workload)
    found = [one for study in VERDICTS for one in _primary(study, of(study))]
    yield "verdicts", _forest(found)
    guards = [
        (one.comparison.question.device, one)
        for one in of(GUARDS).findings
        if one.role in {Role.PRIMARY, Role.GUARD, Role.CONTROL}
        and one.planned.metric.name in {"throughput", "cpu_per_byte", "errors"}
    ]
    yield "guards", _forest(guards)


def every_run(found: Assessment, workload: str) -> bytes:
    """Draw every unit of the throughput of a workload, in order of time."""
    units = found.material.units
    rows = units[(units["metric"] == "throughput") & (units["workload"] == workload)]
    plot = figures.runs(
        rows, label="Throughput", unit="bit/s", variants=found.study.design.variants
    )
    return figures.to_svg(plot)


def _primary(name: str, found: Assessment) -> list[tuple[str, Finding]]:
    group = name.partition("/")[2]
    return [(group, one) for one in found.findings if one.role is Role.PRIMARY]


def _forest(found: Sequence[tuple[str, Finding]]) -> bytes:
    rows = pd.DataFrame([_row(group, one) for group, one in found])
    return figures.to_svg(figures.forest(rows))


def _row(group: str, one: Finding) -> dict[str, object]:
    comparison = one.comparison
    ratio = comparison.scale is Scale.RATIO
    margin = np.nan if one.margin is None else one.margin
    change = comparison.change
    ends = (change.value, change.low, change.high) if change else (np.nan,) * 3
    return {
        "name": f"{one.planned.metric.name}, {comparison.question.workload}",
        "device": group,
        "role": str(one.role),
        "change": 100 * ends[0],
        "low": 100 * ends[1],
        "high": 100 * ends[2],
        "margin": 100 * (np.expm1(margin) if ratio else margin),
        "axis": "%" if ratio else "pp",
        "verdict": str(one.guarded or one.verdict),
    }


# ---- what the source says -----------------------------------------------------------


def caveat_table() -> str:
    """Every caveat of the checks and the comparison, as a table in Markdown."""
    lines = [
        "| code | weight | what it says | what helps | found by |",
        "| --- | --- | --- | --- | --- |",
    ]
    roots: dict[str, list[str]] = {}
    for one in checks.CHECKS:
        roots.setdefault(one.__module__, []).append(one.__name__)
    # the package exports a function of the name of the last module
    for name in (*roots, "patchstudy.compare"):
        module = sys.modules[name]
        owners = _owners(module, roots.get(name, ()))
        for place, cells in _caveats(module):
            about = _summary(module, owners[place]) if owners else "the comparison"
            row = (f"`{cells[0]}`", *cells[1:], about)
            lines.append(f"| {' | '.join(row)} |".replace("<", "&lt;"))
    return "\n".join(lines)


def templates(module: ModuleType, names: Sequence[str]) -> list[str]:
    """Every text in the named functions and constants, a placeholder as ``…``."""
    wanted = [node for name, node in places(module) if name in names]
    found = [text for node in wanted for text in _texts(node)]
    return list(dict.fromkeys(" ".join(text.split()) for text in found))


def places(module: ModuleType) -> Iterator[tuple[str, ast.AST]]:
    """Functions and constants at the top of a module, in order."""
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node


def _owners(module: ModuleType, roots: Sequence[str]) -> dict[str, str]:
    """Map each function or constant to the first of the roots that uses it."""
    uses = {
        name: {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        for name, node in places(module)
    }
    owners: dict[str, str] = {}
    for root in roots:
        waiting = [root]
        while waiting:
            name = waiting.pop()
            if name in uses and name not in owners:
                owners[name] = root
                waiting.extend(sorted(uses[name]))
    return owners


def _caveats(module: ModuleType) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Place, and code, severity, text and remedy of each caveat that is made there."""
    for name, node in places(module):
        known = {
            one.targets[0].id: one.value
            for one in ast.walk(node)
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
        }
        for call in ast.walk(node):
            if isinstance(call, ast.Call):
                code, weight, text, todo = _parts(call)
                if isinstance(code, ast.Constant):
                    severity = weight.attr.lower() if hasattr(weight, "attr") else "…"
                    said = _template(_plain(text, known)) or "…"
                    helps = _template(todo) or "-"
                    yield name, (_template(code), severity, said, helps)


def _parts(call: ast.Call) -> tuple[ast.AST | None, ...]:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name == "doubt_about":
        return tuple(call.args[1:5])
    if name == "Caveat":
        named = {one.arg: one.value for one in call.keywords}
        return tuple(named.get(key) for key in ("code", "severity", "text", "todo"))
    return (None,) * 4


def _plain(node: ast.AST | None, known: dict[str, ast.expr]) -> ast.AST | None:
    """Follow a name to the text that it was given, and a call to what it cleans."""
    while True:
        if isinstance(node, ast.Name) and node.id in known:
            node = known[node.id]
        elif isinstance(node, ast.Call) and len(node.args) == 1:
            node = node.args[0]
        else:
            return node


def _texts(node: ast.AST) -> Iterator[str]:
    """Texts below a node, without docstrings and without the parts of f-strings."""
    if isinstance(node, (ast.JoinedStr, ast.Constant)):
        text = _template(node)
        if re.search(r"[^\W\d_]{2}", text):
            yield text
        return
    for child in ast.iter_child_nodes(node):
        documents = isinstance(child, ast.Expr) and isinstance(
            child.value, ast.Constant
        )
        if not documents:
            yield from _texts(child)


def _template(node: ast.AST | None) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_template(part) or "…" for part in node.values)  # noqa: PD011
    return ""


def _summary(module: ModuleType, name: str) -> str:
    about = inspect.getdoc(getattr(module, name)) or ""
    return re.sub(r" \(STATISTICS[^)]*\)", "", about.partition("\n\n")[0]).rstrip(".")


def with_table(page: str) -> str:
    """Put the present table of caveats into the page."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{caveat_table()}\n\n{END}{after}"


def main() -> None:
    """Write the figures and the table."""
    FOLDER.mkdir(exist_ok=True)
    for name, svg in drawn():
        (FOLDER / f"{name}.svg").write_bytes(svg)
        print(f"{name}.svg: {len(svg) / 1000:.0f} kB")
    if PAGE.exists():
        PAGE.write_text(with_table(PAGE.read_text("utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
