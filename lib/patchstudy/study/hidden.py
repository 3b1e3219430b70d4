"""Keep names of hosts and users, addresses and serial numbers out of a report.

They are looked for in what the raw files say, and replaced there, in symbols of
profiles and in the paths of files. The raw files stay as they are, and so do the names
that the study itself gives: devices, variants, workloads, whatever ``study.toml`` says,
and the subject of the patch.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from patchstudy.records import Measurement, Profile
from patchstudy.study.folder import Source, Study

#: Facts that hold the name of a host.
_HOSTS: Final = frozenset({"hostname", "nodename", "host"})
#: Facts that hold the name of a user, and those that tell one machine from another.
_PERSONS: Final = re.compile(
    r"(?i)(?:user|login|owner|author|operator|account|e?mail|tester)(?:[ _-]?name)?"
)
_SERIALS: Final = re.compile(
    r"(?i).*(?:serial|asset|machine[ _-]?id|hostid)(?:[ _-]?(?:number|no|tag|id))?"
    r"|(?:imei|imsi|iccid|meid|esn|msisdn)(?:[ _-]?(?:number|sv))?|(?:.*_)?uuid"
)
#: The same within a text.
_SERIAL: Final = re.compile(
    r"(?i)\b(?:serial(?:[ _-]?(?:number|no))?|imei|imsi|iccid|meid|machine[ _-]?id)"
    r"\b\s*[:=]\s*([\w./-]{4,64})"
    r"|\b(?:part)?uuid\s*[:=]\s*([0-9a-f-]{8,36})(?![0-9a-f-])"
)
#: Names that tell nothing, and names too short to be looked for in a text.
_NO_NAMES: Final = frozenset({"localhost", "(none)", "none", "unknown", "root"})
_SHORTEST: Final = 3
#: A number of fewer digits is no serial number, and may be a measured value.
_LONG_NUMBER: Final = 8

_MAC: Final = re.compile(
    r"(?<![0-9A-Fa-f:.-])(?:[0-9A-Fa-f]{2}([:-]))(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}"
    r"(?![0-9A-Fa-f:-])"
)
_DOTTED_MAC: Final = re.compile(
    r"(?<![\w.])(?=[\d.]*[A-Fa-f])(?:[0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}(?![\w]|\.\w)"
)
_IPV4: Final = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)")
_IPV6: Final = re.compile(
    r"(?<![\w:.])(?=[0-9A-Fa-f]*:[0-9A-Fa-f]*:)[0-9A-Fa-f:]{3,39}(?![\w:])"
)
_USERS: Final = (
    re.compile(r"(?:/home/|/Users/|\\Users\\)([A-Za-z0-9._-]+)"),
    re.compile(r"(?<![\w.@-])([A-Za-z_][\w.-]*)@(?=[A-Za-z0-9])"),
)
_LOGIN: Final = re.compile(r"(?<![\w.@-])[A-Za-z_][\w.-]*@([A-Za-z0-9][\w.-]*)")


def hide(study: Study, *, wanted: bool = True) -> Study:
    """Return the study with every host, user and address of its raw files renamed.

    Hosts become ``host-1``, users ``user-1``, MAC addresses ``mac-1``, public IP
    addresses and those made from a MAC address ``address-1``, serial numbers, IMEI and
    UUID ``serial-1``; a name is the same wherever it stands, and counts in the
    order of the alphabet. Private, local and documentation addresses stay. A name
    that the study itself uses stays as well: hiding ``router`` would spoil the report.

    Returns
    -------
    Study
        The same object where there is nothing to hide, or it is not wanted.
    """
    if not wanted:
        return study
    found: dict[str, set[str]] = {"host": set(), "user": set(), "serial": set()}
    addresses: dict[str, set[str]] = {"mac": set(), "address": set()}
    studies = (study, study.noise) if study.noise else (study,)
    for name, text in (one for each in studies for one in _texts(each)):
        _note(name, text, found, addresses)
    own = _own_words(study)
    names = {
        original: f"{kind}-{number}"
        for kind, originals in found.items()
        for number, original in enumerate(sorted(_hideable(originals, own)), start=1)
    }
    numbers = {
        original: f"{kind}-{number}"
        for kind, originals in addresses.items()
        for number, original in enumerate(sorted(originals), start=1)
    }
    if not names and not numbers:
        return study
    return _renamed(study, names | numbers)


def _hideable(names: Iterable[str], own: set[str]) -> set[str]:
    return {
        one
        for one in names
        if len(one) >= _SHORTEST
        and one.lower() not in _NO_NAMES | own
        and (len(one) >= _LONG_NUMBER or not one.replace(".", "").isdigit())
    }


def _own_words(study: Study) -> set[str]:
    """Words of the design and of the factors of the runs, in small letters."""
    told = [study.name, repr(study.design)]
    for run in study.runs:
        told += [run.device, run.workload, run.name]
    words = {one.lower() for text in told for one in re.split(r"[^\w.-]+", text)}
    return words | {one for text in words for one in re.split(r"[^a-z0-9]+", text)}


# ---- what the raw files say ---------------------------------------------------------


def _texts(study: Study) -> Iterator[tuple[str, str]]:
    """Yield every string that raw files put into a study, with the name of its fact."""
    for run in study.runs:
        yield from _strings("", run.facts)
        for source in run.sources:
            told = source.capture
            yield from _strings("", [told.facts, told.workload, told.command])
            for one in told.caveats:
                yield "", one.text
            if told.error:
                yield "", told.error.text
            for labels in {tuple(x.labels.items()) for x in told.measurements}:
                yield from labels
    for fact in study.facts:
        yield "", fact.text
    for one in study.leftovers:
        yield "", one.reason


def _strings(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, int) and _SERIALS.fullmatch(name):
        yield name, str(value)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield "", str(key)
            yield from _strings(str(key), one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _strings(name, one)


def _note(
    name: str,
    text: str,
    names: dict[str, set[str]],
    addresses: dict[str, set[str]],
) -> None:
    if name in _HOSTS and not _address(text):
        names["host"].add(text.partition(".")[0])
        names["host"].add(text)
    if name == "system_info" and len(words := text.split()) > 2:
        names["host"].add(words[1])
    if _PERSONS.fullmatch(name):
        names["user"].add(text.strip())
    if _SERIALS.fullmatch(name):
        names["serial"].add(text.strip())
    names["serial"].update(x[1] or x[2] for x in _SERIAL.finditer(text))
    for pattern in _USERS:
        names["user"].update(pattern.findall(text))
    names["host"].update(x for x in _LOGIN.findall(text) if not _address(x))
    for pattern in (_MAC, _DOTTED_MAC):
        addresses["mac"].update(one[0] for one in pattern.finditer(text))
    for pattern in (_IPV4, _IPV6):
        addresses["address"].update(
            one[0] for one in pattern.finditer(text) if _tells(one[0])
        )


def _address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _tells(text: str) -> bool:
    """Tell whether an address is public, or holds a MAC address."""
    try:
        found = ip_address(text)
    except ValueError:
        return False
    if found.version == 4:
        return found.is_global
    unicast = found.packed[0] >> 5 == 1  # 2000::/3: all that is handed out
    return (found.is_global and unicast) or found.packed[11:13] == b"\xff\xfe"


# ---- and the study without it -------------------------------------------------------


def _renamed(study: Study, names: Mapping[str, str]) -> Study:
    longest = sorted(names, key=lambda one: (-len(one), one))
    edge = r"(?<![A-Za-z0-9]){}(?![A-Za-z0-9])"
    pattern = re.compile("|".join(edge.format(re.escape(one)) for one in longest))

    def rename(value: Any) -> Any:  # noqa: ANN401 - JSON
        return _mapped(value, lambda text: pattern.sub(lambda x: names[x[0]], text))

    return _with(study, names, rename)


def _with(
    study: Study, names: Mapping[str, str], rename: Callable[[Any], Any]
) -> Study:
    return replace(
        study,
        hidden=len(names),
        noise=study.noise and _with(study.noise, names, rename),
        runs=tuple(
            replace(
                run,
                facts=rename(run.facts),
                sources=tuple(
                    _hidden_source(one, study.folder, rename) for one in run.sources
                ),
            )
            for run in study.runs
        ),
        facts=tuple(
            replace(one, name=rename(one.name), text=rename(one.text))
            for one in study.facts
        ),
        leftovers=tuple(
            replace(one, path=rename(one.path), reason=rename(one.reason))
            for one in study.leftovers
        ),
        files={rename(path): digest for path, digest in study.files.items()},
    )


def _hidden_source(
    source: Source, folder: Path, rename: Callable[[Any], Any]
) -> Source:
    """Rename in all that a file says; metrics, codes and tools keep their names."""
    told = source.capture
    return replace(
        source,
        place=rename(source.place),
        capture=replace(
            told,
            path=folder / rename(told.path.relative_to(folder).as_posix()),
            profiles=tuple(_hidden_profile(one, rename) for one in told.profiles),
            command=rename(told.command),
            facts=rename(told.facts),
            workload=rename(told.workload),
            caveats=tuple(
                replace(one, text=rename(one.text), todo=rename(one.todo))
                for one in told.caveats
            ),
            error=told.error and replace(told.error, text=rename(told.error.text)),
            measurements=tuple(_relabelled(one, rename) for one in told.measurements),
        ),
    )


def _hidden_profile(one: Profile, rename: Callable[[Any], Any]) -> Profile:
    stacks = tuple(
        stack if (frames := rename(stack.frames)) == stack.frames
        else replace(stack, frames=frames)
        for stack in one.stacks
    )  # fmt: skip
    return replace(one, stacks=stacks)


def _relabelled(one: Measurement, rename: Callable[[Any], Any]) -> Measurement:
    labels = rename(one.labels)
    return one if labels == one.labels else one._replace(labels=labels)


def _mapped(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 - JSON
    """Change every string of a JSON value, keys included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {_mapped(k, change): _mapped(x, change) for k, x in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_mapped(one, change) for one in value)
    if isinstance(value, int) and value >= 10 ** (_LONG_NUMBER - 1):
        return changed if (changed := change(str(value))) != str(value) else value
    return value
