"""Counters of a network interface under the same names, whatever tool printed them."""

from collections.abc import Iterator, Mapping

from patchstudy.records import Measurement


def readings(
    interface: str, direction: str, counters: Mapping[str, int]
) -> Iterator[Measurement]:
    """Yield the readings of one direction of an interface.

    Parameters
    ----------
    interface
        Its name.
    direction
        ``"rx"`` or ``"tx"``.
    counters
        By the names of ``struct rtnl_link_stats64`` without ``rx_`` and ``tx_``.

    Yields
    ------
    Measurement
        ``event:<direction>_<name>`` for every counter, then ``errors`` and ``drops``
        with the packets of the direction as their exposure.
    """
    for name, value in counters.items():
        yield Measurement(
            metric=f"event:{direction}_{name}",
            value=value,
            labels={"interface": interface},
        )
    for metric, name in (("errors", "errors"), ("drops", "dropped")):
        if name in counters:
            yield Measurement(
                metric=metric,
                value=counters[name],
                labels={"interface": interface, "direction": direction},
                exposure=counters.get("packets"),
            )
