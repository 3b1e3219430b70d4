"""The difference of two snapshots of one set of counters."""

from patchstudy.records import Capture


def difference(before: Capture, after: Capture) -> Capture:
    """Subtract two snapshots."""
    raise AssertionError(before, after)
