"""How evenly several streams shared what they moved."""

import pytest

from patchstudy.loaders.reading import Reading, shares

LABELS = {"direction": "forward"}


def numbers(rates):
    return {one.metric: one.value for one in shares(rates, LABELS)}


@pytest.mark.parametrize(
    ("rates", "fairness", "smallest", "starved"),
    [
        ([10.0, 10.0], 1.0, 1.0, 0.0),
        ([30.0, 10.0], 0.8, 0.5, 0.0),
        ([90.0, 90.0, 0.0], 2 / 3, 0.0, 1 / 3),
        # a tenth of the fair share is not yet starved
        ([190.0, 10.0], 40000 / (2 * 36200), 0.1, 0.0),
        ([191.0, 9.0], 40000 / (2 * 36562), 0.09, 0.5),
    ],
)
def test_shares_of_streams(rates, fairness, smallest, starved):
    assert numbers(rates) == pytest.approx(
        {"fairness": fairness, "flow_share_min": smallest, "starved_flows": starved}
    )


@pytest.mark.parametrize("rates", [[], [5.0], [0.0, 0.0]])
def test_one_stream_or_nothing_moved_has_no_shares(rates):
    assert shares(rates, LABELS) == []


def test_starved_flows_are_counted_among_the_streams():
    starved = shares([90.0, 90.0, 0.0], LABELS)[-1]
    assert starved.value * starved.exposure == pytest.approx(1)
    assert starved.labels == LABELS


def test_the_shares_carry_the_labels_of_their_file():
    reading = Reading(labels={"side": "local"})
    reading.streams([30.0, 10.0], LABELS)
    found = [one for one in reading.measurements if one.metric == "flow_share_min"]
    assert [one.labels for one in found] == [{"side": "local", **LABELS}]
