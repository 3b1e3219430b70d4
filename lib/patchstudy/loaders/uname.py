"""Read ``uname -a`` or /proc/version: which kernel ran, as facts.

``uname -a`` prints the fields of ``struct utsname`` in one line with blanks between
them: name, host, ``release``, ``version`` (begins with ``#`` and may hold blanks),
``machine``, then what coreutils adds. The machine is the first word behind the version
that names an architecture; where none does it is absent. /proc/version
(``linux_proc_banner``) has the builder and the compiler in place of the host. The host
and the builder name places and people and are no facts. Shorter answers are read too:
``uname``, ``uname -sr``, ``-srm``, and ``-r`` where the release has a suffix
(``6.1.0-18-amd64``), as a bare ``6.1.0`` may be the version of anything.
"""

import re

from patchstudy.errors import CaptureError
from patchstudy.records import Capture, RawFile

_UNAME = re.compile(
    r"\s*Linux \S+ (?P<release>\d+\.\d\S*) (?P<version>#\d[^\n]*?)(?<!\s)\s*+"
)
_BANNER = re.compile(
    r"\s*Linux version (?P<release>\d+\.\d\S*) \((?P<builder>[^()\s]*)\) "
    r"\((?P<compiler>[^\n]*)\) (?P<version>#\d[^\n]*?)(?<!\s)\s*+"
)
_NAMES = (
    r"(x86_64|i[3-6]86|aarch64(?:_be)?|arm\w+|mips\w*|ppc\w*|s390x?|riscv\w+"
    r"|loongarch\w+|sparc\w*|parisc\w*|alpha|ia64|m68k|sh\d\w*)"
)
_MACHINE = re.compile(rf" {_NAMES}(?= |$)")
_SHORT = (
    re.compile(rf"Linux(?: (?P<release>\d+\.\d\S*)(?: (?P<machine>{_NAMES}))?)?"),
    re.compile(r"(?P<release>[2-9]\.\d+\.\d+-[\w.+-]+)"),
)


def sniff(raw: RawFile) -> bool:
    """Say whether it is one line, and one of the two."""
    if len(raw.data) > 1000:
        return False
    return _short(raw) is not None or any(
        pattern.fullmatch(raw.text) for pattern in (_UNAME, _BANNER)
    )


def _short(raw: RawFile) -> dict[str, str] | None:
    """Return what a short answer tells; None for any other text."""
    matches = (pattern.fullmatch(raw.text.strip()) for pattern in _SHORT)
    found = next((match for match in matches if match), None)
    if found is None:
        return None
    return {key: value for key, value in found.groupdict().items() if value}


def load(raw: RawFile) -> Capture:
    """Read release, version, machine and compiler, as far as they are told."""
    match = _BANNER.fullmatch(raw.text) or _UNAME.fullmatch(raw.text)
    short = _short(raw)
    if match is None and short is not None:
        facts = {"sysname": "Linux", **short}
        return Capture(path=raw.path, sha256=raw.digest, tool="uname", facts=facts)
    if match is None:
        raise CaptureError(raw.path, "not the line of uname -a or of /proc/version")
    told = match.groupdict()
    facts = {key: told[key] for key in ("release", "compiler") if told.get(key)}
    version, machine = told["version"], _MACHINE.search(told["version"])
    if machine and "compiler" not in facts:
        facts["machine"] = machine[1]
        version = version[: machine.start()]
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="uname",
        facts={"sysname": "Linux", **facts, "version": version},
    )
