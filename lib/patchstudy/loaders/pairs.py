"""The difference of two snapshots of one set of counters."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import call_times, cpu_time
from patchstudy.records import Capture, Caveat, Measurement, Severity

#: Tools whose ticks of CPU time become shares.
_CPU_TICKS: Final = {"proc_stat"}

#: Tools that leave out counters that are 0, so that an absent one is a 0, and which of
#: them: a driver that counts a histogram prints the bins that hold something.
_OMITS_ZEROS: Final = {
    "nstat": re.compile(r".*"),
    "counters": re.compile(r"event:hist_.*"),
}

_Key = tuple[str, tuple[tuple[str, str], ...]]
_Readings = dict[_Key, Measurement]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Delta:
    """What a counter grew by; None after a reset, ``guessed`` after an assumed wrap."""

    value: float | None
    guessed: bool = False


def difference(before: Capture, after: Capture) -> Capture:
    """Return what the counters grew by between two snapshots of one tool.

    Counters are matched by metric and labels. One that fell wrapped if it stood in the
    upper half of its range (``counter_bits``); a 64-bit one that stood in the upper
    half of 32 bits is taken to be counted in 32 bits by its driver, with the caveat
    ``wrapped``. Any other that fell was reset: it is absent, with the caveat ``reset``;
    then the file's other counters that fell were reset too. A counter in only one of
    the files is absent with the caveat ``one-sided``, but counts from 0 for a tool that
    leaves out zeros. Gauges are left out. Exposures are subtracted alike; one that
    cannot be is None.

    Parameters
    ----------
    before, after
        Cumulative captures of the same tool.

    Returns
    -------
    Capture
        Not cumulative; path, sha256 and facts of ``after``, caveats of both, values of
        the whole time between them. Of two readings of /proc/uptime the value of
        ``event:uptime`` is that time in seconds; two of /proc/stat give shares of CPU
        time as well (``cpu_time.with_shares``), and two of a driver's counters the mean
        times of calls that it measured (``call_times.with_times``).

    Raises
    ------
    CaptureError
        If the tools differ or one is not a snapshot of counters.
    """
    _check(before, after)
    both = [[(_key(x), x) for x in one.measurements] for one in (before, after)]
    counts = [Counter(key for key, _ in one) for one in both]
    old, new = map(_readings, both, counts)
    if omitted := _OMITS_ZEROS.get(after.tool):
        old, new = _with_zeros(old, new, omitted), _with_zeros(new, old, omitted)
    shared = [key for key in new if key in old]
    deltas = _deltas(old, new, after.counter_bits)
    caveats = (
        *before.caveats,
        *after.caveats,
        *_caveats(deltas, set(old) ^ set(new)),
        *_repeated(counts),
    )
    delta = replace(
        after,
        measurements=tuple(
            measurement
            for key in shared
            for measurement in _measurement(
                old[key], new[key], deltas[key], after.counter_bits
            )
        ),
        cumulative=False,
        caveats=tuple(dict.fromkeys(caveats)),
    )
    if delta.tool in _CPU_TICKS:
        return cpu_time.with_shares(before, delta)
    return call_times.with_times(delta) if delta.tool == "counters" else delta


def _check(before: Capture, after: Capture) -> None:
    """Refuse what is not a pair of snapshots."""
    if before.tool != after.tool:
        problem = f"{after.tool} output cannot be compared with that of {before.tool}"
        raise CaptureError(after.path, f"{problem} in {before.path}")
    for one in (before, after):
        if not one.cumulative:
            raise CaptureError(
                one.path, f"{one.tool} output is no snapshot of counters"
            )


def _key(one: Measurement) -> _Key:
    return one.metric, tuple(sorted(one.labels.items())) if one.labels else ()


def _readings(
    told: Iterable[tuple[_Key, Measurement]], counts: Mapping[_Key, int]
) -> _Readings:
    """Return the counters that are there once, by metric and labels; no gauges."""
    return {
        key: one
        for key, one in told
        if one.labels.get("kind") != "gauge" and counts[key] == 1
    }


def _with_zeros(
    readings: _Readings, other: _Readings, omitted: re.Pattern[str]
) -> _Readings:
    """Add a 0 for every such counter that only the other snapshot has."""
    absent = {
        key: other[key]._replace(value=0)
        for key in other
        if key not in readings and omitted.fullmatch(key[0])
    }
    return {**readings, **absent}


def _deltas(old: _Readings, new: _Readings, bits: int) -> dict[_Key, _Delta]:
    """Return what every counter in both snapshots grew by."""
    pairs = {key: (old[key].value, new[key].value) for key in new if key in old}
    deltas = {key: _delta(*pair, bits) for key, pair in pairs.items()}
    if bits == 32:
        deltas = {key: _total(key, deltas) for key in deltas}
    if any(delta.value is None for delta in deltas.values()):
        fallen = {key for key, (first, last) in pairs.items() if last < first}
        deltas.update({key: _Delta(value=None) for key in fallen})
    return deltas


def _delta(before: float, after: float, bits: int) -> _Delta:
    """Subtract two readings of a counter of so many bits."""
    if after >= before:
        return _Delta(value=after - before)
    if before >= 2 ** (bits - 1):
        return _Delta(value=(after - before) % 2**bits)
    if 2**31 <= before < 2**32:
        return _Delta(value=(after - before) % 2**32, guessed=True)
    return _Delta(value=None)


def _total(key: _Key, deltas: Mapping[_Key, _Delta]) -> _Delta:
    """Return the delta of a counter; of one without labels, the sum of its parts.

    A sum of 32-bit counters falls when one of them wraps, but wraps nowhere itself.
    """
    metric, labels = key
    parts = [one for (name, told), one in deltas.items() if name == metric and told]
    if labels or not parts:
        return deltas[key]
    values = [one.value for one in parts if one.value is not None]
    return _Delta(value=sum(values) if len(values) == len(parts) else None)


def _measurement(
    old: Measurement, new: Measurement, delta: _Delta, bits: int
) -> Iterator[Measurement]:
    """Yield the delta as a measurement; nothing after a reset."""
    if delta.value is None:
        return
    exposure = None
    if old.exposure is not None and new.exposure is not None:
        exposure = _delta(old.exposure, new.exposure, bits).value
    yield new._replace(value=delta.value, exposure=exposure)


def _caveats(deltas: Mapping[_Key, _Delta], one_sided: set[_Key]) -> Iterator[Caveat]:
    """Yield one caveat for each way in which counters were not plainly subtracted."""
    reset = [key for key, delta in deltas.items() if delta.value is None]
    guessed = [key for key, delta in deltas.items() if delta.guessed]
    if reset:
        text = f"fell between the two snapshots and are left out: {_list(reset)}"
        todo = (
            "Find out what reset them: a reboot, a reload of the driver, a link flap."
        )
        yield _doubt("reset", text, todo)
    if guessed:
        text = f"fell and are taken to have wrapped at 32 bits: {_list(guessed)}"
        todo = "Compare with another counter of the same traffic."
        yield _doubt("wrapped", text, todo)
    if one_sided:
        text = f"in only one of the two snapshots, left out: {_list(sorted(one_sided))}"
        yield Caveat(code="one-sided", severity=Severity.NOTE, text=text)


def _repeated(counts: Iterable[Mapping[_Key, int]]) -> Iterator[Caveat]:
    """Yield a caveat for counters that one file holds more than once."""
    for number in counts:
        repeated = [key for key, times in number.items() if times > 1]
        if repeated:
            text = f"more than once in one snapshot, left out: {_list(repeated)}"
            yield Caveat(code="ambiguous", severity=Severity.NOTE, text=text)


def _doubt(code: str, text: str, todo: str) -> Caveat:
    return Caveat(code=code, severity=Severity.DOUBT, text=text, todo=todo)


def _list(keys: Iterable[_Key]) -> str:
    """Write the names of counters with their labels, ten at most."""
    names = [" ".join([metric, *(value for _, value in told)]) for metric, told in keys]
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(names[:10]) + more
