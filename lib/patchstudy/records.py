"""What a loader gets and hands over: a raw file in, a capture with its numbers out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from itertools import repeat
from pathlib import Path
from typing import Final, NamedTuple

from patchstudy.cards import Carded, Rows

_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_NO_LABELS: Final[Mapping[str, str]] = {}


class Severity(StrEnum):
    """How much a caveat takes from the trust in a result."""

    NOTE = "note"  # worth knowing
    DOUBT = "doubt"  # may change the conclusion
    CAP = "cap"  # the conclusion cannot be drawn from these data
    UNUSABLE = "unusable"  # the file or the study cannot be used


#: Whether values were measured here or are taken from a mail or a paper.
KINDS = ("measured", "published", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caveat:
    """A reason to trust a result less, with what to do about it.

    Attributes
    ----------
    code
        Short stable name, for programs: ``"clock-unknown"``.
    severity
        How much it weighs.
    text
        One sentence for people.
    todo
        What would remove the doubt; empty where nothing would.
    """

    code: str
    severity: Severity
    text: str
    todo: str = ""


def _decoded(data: bytes) -> str:
    if data.startswith(_UTF16_MARKS):
        text = data.decode("utf-16", errors="replace")
    else:
        text = data.removeprefix(_UTF8_MARK).decode(errors="replace")
    return text.replace("\xa0", " ") if "\xa0" in text else text


@dataclass(frozen=True, kw_only=True)
class RawFile:
    """The bytes of one raw file; loaders see this and never touch the disk.

    Attributes
    ----------
    path
        As the user named it.
    data
        The bytes, already uncompressed, or out of the archive.
    digest
        sha256 of the bytes on disk, in hexadecimal.
    """

    path: Path
    data: bytes
    digest: str

    @cached_property
    def text(self) -> str:
        """The text, by byte-order mark or as UTF-8; undecodable bytes are replaced.

        A no-break space, which a web page puts between columns, is a space.
        """
        return _decoded(self.data)

    @cached_property
    def head(self) -> str:
        """The first 4096 bytes as text, enough to recognise a tool."""
        if len(self.data) <= 4096:
            return self.text
        wide = self.data.startswith(_UTF16_MARKS)
        return _decoded(self.data[: 8192 if wide else 4096])

    @classmethod
    def of(cls, path: Path, data: bytes) -> "RawFile":
        """Make one from bytes in memory, as tests do."""
        return cls(path=path, data=data, digest=sha256(data).hexdigest())


class Measurement(NamedTuple):
    """One number read from a raw file, in the base unit of its metric.

    Attributes
    ----------
    metric
        Name as in ``patchstudy.metrics``.
    value
        Finite number in the metric's base unit.
    start_s, end_s
        Interval within the run, in seconds from its start; both None for a value of
        the whole run.
    labels
        What tells this number from others of the same metric in the file: ``stream``,
        ``cpu``, ``interface``, ``direction``, ``test``. The number for the whole file
        has the fewest labels.
    exposure
        Packets (or transactions) over which a count or a proportion was taken; None
        where the file does not tell.
    resolution
        Last digit the tool prints, in the base unit; None where not known.
    """

    metric: str
    value: float
    start_s: float | None = None
    end_s: float | None = None
    labels: Mapping[str, str] = _NO_LABELS
    exposure: float | None = None
    resolution: float | None = None


def intervals(
    metric: str,
    labels: Mapping[str, str],
    starts: Sequence[float],
    ends: Sequence[float],
    values: Sequence[float],
) -> list[Measurement]:
    """Return a measurement for each interval; files hold them by the thousand."""
    nothing = repeat(None)
    columns = (repeat(metric), values, starts, ends, repeat(labels), nothing, nothing)
    return list(map(tuple.__new__, repeat(Measurement), zip(*columns, strict=False)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One call stack of a profile, from the outermost frame to the leaf.

    Attributes
    ----------
    frames
        Symbols as the tool wrote them.
    weight
        In the unit of the profile.
    objects
        Where each frame lies, as the tool wrote it: ``"[kernel.kallsyms]"``,
        ``"[qmi_wwan]"``, ``"/usr/bin/iperf3"``, ``"inlined"``, ``""`` for a frame
        without; empty where the file tells it of no frame.
    samples
        How many samples have this stack; None where the file tells weights only.
    comm
        Name of the thread; None where the file does not tell it, or where it cannot be
        told from a function.
    """

    frames: tuple[str, ...]
    weight: float
    objects: tuple[str, ...] = ()
    samples: int | None = None
    comm: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Profile(Carded):
    """Weighted call stacks of one event; those of two events are never added up.

    Attributes
    ----------
    event
        What was sampled, as the tool names it: ``"cpu-clock"``, ``"cycles:ppp"``; None
        where the file does not tell.
    unit
        Unit of the weights: ``"sample"``; ``"ns"`` of a clock; ``"event"``, how many
        events the samples stand for (cycles, page faults); None where the file does not
        tell.
    stacks
        In the order in which the file has them first; each of them once, unless the
        file itself repeats it.
    lost
        How many samples the tool says are not in the file; None where it does not tell.
    """

    event: str | None
    unit: str | None
    stacks: tuple[Stack, ...]
    lost: int | None = None

    @property
    def total(self) -> float:
        """Sum of all weights."""
        return sum(stack.weight for stack in self.stacks)

    @property
    def samples(self) -> int | None:
        """Number of all samples, if the file tells that of every stack."""
        counts = [one.samples for one in self.stacks if one.samples is not None]
        return sum(counts) if len(counts) == len(self.stacks) else None

    def card(self) -> tuple[str, Rows]:
        """Tell how much was sampled, and the functions that took most of it."""
        own: dict[str, float] = {}
        for stack in self.stacks:
            leaf = stack.frames[-1] if stack.frames else "(none)"
            own[leaf] = own.get(leaf, 0.0) + stack.weight
        most = sorted(own.items(), key=lambda one: (-one[1], one[0]))[:5]
        shares = tuple(
            (f"{100 * weight / self.total:.1f} %", f"self time of {name}")
            for name, weight in most
            if self.total
        )
        size = f"{self.total:g} {self.unit or 'of an unknown unit'}"
        rows = (("stacks", str(len(self.stacks))), ("weight", size), *shares)
        return f"profile of {self.event or 'an unknown event'}", rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """How long the calls of one function took, as a histogram or one by one.

    Attributes
    ----------
    function
        As the tool names it; empty where only the name of the file tells it.
    upper_s
        Upper end of each bucket in seconds, of single calls their duration; rising, the
        last infinite where the bucket has no end.
    calls
        How many calls are in each bucket.
    """

    function: str
    upper_s: tuple[float, ...]
    calls: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a file that was read holds no complete run."""

    text: str
    where: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """Everything one raw file says.

    Attributes
    ----------
    path, sha256
        The raw file.
    tool, tool_version
        Who wrote it; the version is None where the file does not tell.
    command
        The command line, where the file tells it.
    started_at
        UTC time in ISO 8601 with ``Z``, where the file tells it beyond doubt.
    workload
        ``protocol``, ``direction``, ``streams``, ``duration_s`` and what else the file
        says about what was run.
    measurements
        All numbers. Of a cumulative file they are counter readings.
    cumulative
        True for a snapshot of counters: only the difference of two says something
        about a run (``loaders.difference``).
    counter_bits
        Width at which the counters of a cumulative file wrap.
    profiles
        Call stacks, of a profiler's output: one profile an event, in the order of the
        file.
    durations
        How long calls took, one for each function.
    facts
        What the file says about the machine and the set-up; plain JSON values.
    caveats
        What is absent or doubtful, and why.
    error
        Set for an aborted run: then the measurements are intervals only.
    """

    path: Path
    sha256: str
    tool: str
    tool_version: str | None = None
    command: str | None = None
    started_at: str | None = None
    workload: Mapping[str, str | int | float | None] = field(default_factory=dict)
    measurements: tuple[Measurement, ...] = ()
    cumulative: bool = False
    counter_bits: int = 64
    profiles: tuple[Profile, ...] = ()
    durations: tuple[Durations, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    caveats: tuple[Caveat, ...] = ()
    error: Fault | None = None
