"""Read ``dmesg``: the kernel's messages since boot, as facts.

Lines ``[   12.345678] text``, with ``-T`` a date in the brackets, with ``-x`` facility
and level before them (sys-utils/dmesg.c of util-linux), or ``<4>[   12.345678]``.
Facts: ``release`` and ``version`` of the banner of the kernel, absent where the ring
buffer has lost it; ``number_of_lines``; ``splats``, the messages with which the kernel
reports a fault in itself (warnings, bugs, oopses, stalls, sanitizers), without times.
"""

import re

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import head_lines, line_end, lines
from patchstudy.records import Capture, RawFile

_LINE = re.compile(
    r"(?:<\d+>|\w+ *:\w+ *: )?"
    r"\[(?: *\d+\.\d{6}|\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}|[+<] *\d+\.\d{6}>?|"
    r" *\d+\.\d{6} < *\d+\.\d{6}>)\]"
    r"(?: ?\[ *[TC]\d+\])? ?(?P<text>.*)"
)
_BANNER = re.compile(r"Linux version (\d+\.\d\S*) .* (#\d+ .*)")
_SPLAT = re.compile(
    r"WARNING: |BUG: |Oops|Kernel panic|general protection fault|INFO: task .* blocked"
    r"|(?:rcu: )?INFO: rcu.* stall|watchdog: .*lockup|UBSAN: |NETDEV WATCHDOG"
    r"|Unable to handle kernel|kernel BUG at |possible .*locking"
    r"|page allocation failure"
)


def sniff(raw: RawFile) -> bool:
    """Say whether the first lines begin with a time in brackets."""
    top = head_lines(raw)[:5]
    return bool(top) and all(map(_LINE.fullmatch, top))


def load(raw: RawFile) -> Capture:
    """Read the banner and what the kernel reports against itself."""
    texts = [
        match["text"] for _, line in lines(raw) if (match := _LINE.fullmatch(line))
    ]
    if not texts:
        raise CaptureError(raw.path, "holds no message of the kernel")
    banner = next((match for text in texts if (match := _BANNER.match(text))), None)
    told = {"release": banner[1], "version": banner[2]} if banner else {}
    splats = [text.strip() for text in texts if _SPLAT.search(text)]
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="dmesg",
        facts={**told, "number_of_lines": len(texts), "splats": splats},
        caveats=line_end(raw),
    )
