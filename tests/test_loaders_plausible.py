"""The last check of every capture: numbers of an impossible order of magnitude."""

import json
import math
from pathlib import Path

import pytest

from patchstudy import loaders
from patchstudy.errors import CaptureError
from patchstudy.loaders.plausible import checked
from patchstudy.records import Capture, Measurement

GOLDEN = Path(__file__).parent / "golden" / "loaders"


def capture(metric, value, *, link="", **span):
    return Capture(
        path=Path("run.json"),
        sha256="",
        tool="iperf3",
        measurements=(Measurement(metric=metric, value=value, **span),),
        facts={"link_speed": link} if link else {},
    )


@pytest.mark.parametrize(
    ("metric", "value", "problem"),
    [
        ("throughput", 2e13, r"throughput 2e\+13 is above 10 Tbit/s; a wrong unit"),
        ("send_rate", 1e16, "above 10 Tbit/s"),
        ("packet_rate", 1e11, "above 10 Tbit/s"),
        ("throughput", -1.0, "negative; a counter that wrapped"),
        ("loss", 12.0, "loss 12 is outside 0 to 1; a percentage"),
        ("loss", -0.1, "outside 0 to 1"),
        ("cpu_busy", 1.2, "outside 0 to 1"),
        ("rtt_mean", math.nan, "is no number"),
        ("event:x", math.inf, "is no number"),
        ("event:x", 10**400, "event:x 10000000000000000000 is no number"),
    ],
)
def test_a_number_that_cannot_be_is_an_error_with_its_cause(metric, value, problem):
    with pytest.raises(CaptureError, match=problem):
        checked(capture(metric, value))


@pytest.mark.parametrize("beside", [math.inf, math.nan, -1.0, 10**400])
@pytest.mark.parametrize("name", ["exposure", "resolution"])
def test_what_stands_beside_a_number_can_be_too(name, beside):
    with pytest.raises(CaptureError, match="a count or a last digit that is no number"):
        checked(capture("drops", 1.0, **{name: beside}))
    assert checked(capture("drops", 1.0, **{name: 5.0}))


@pytest.mark.parametrize(
    ("start_s", "end_s"),
    [(0.5, math.inf), (0.5, math.nan), (-math.inf, 1.0), (2.0, 2.0), (3.0, 2.0)],
)
def test_an_interval_without_a_length_or_an_end_is_an_error(start_s, end_s):
    one = capture("event:x", 1.0, start_s=start_s, end_s=end_s)
    with pytest.raises(CaptureError, match=r"event:x 1 at .* s lies nowhere in time"):
        checked(one)


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("throughput", 0.0),
        ("throughput", 4e11),
        ("loss", 1.0),
        ("cpu_busy", 1.0002),
        ("event:temperature", -5.0),
        ("event:bytes", 2.0**64),
    ],
)
def test_a_number_that_can_be_passes(metric, value):
    assert checked(capture(metric, value)).measurements[0].value == value


def test_a_run_faster_than_the_link_is_an_error():
    with pytest.raises(CaptureError, match=r"above the link's 1e\+09 bit/s"):
        checked(capture("throughput", 1.1e9, link="1000Mb/s"))
    assert checked(capture("throughput", 0.94e9, link="1000Mb/s"))


def test_a_short_interval_may_be_faster_than_the_link():
    assert checked(
        capture("throughput", 1.5e9, link="1000Mb/s", start_s=0.0, end_s=0.1)
    )


def test_an_interval_is_named_by_its_time():
    with pytest.raises(CaptureError, match="at 1-2 s is above"):
        checked(capture("throughput", 1e14, start_s=1.0, end_s=2.0))


def test_every_loader_is_checked(tmp_path):
    document = json.loads((GOLDEN / "iperf3" / "v312-tcp-fwd.json").read_bytes())
    for part in ("sum_sent", "sum_received"):
        document["end"][part]["bytes"] = 10**15
    path = tmp_path / "run.json"
    path.write_text(json.dumps(document))
    with pytest.raises(CaptureError, match="above 10 Tbit/s"):
        loaders.load(path)


def test_flent_tells_the_link_of_a_card_and_not_of_a_veth(shared):
    folder = shared / "corpus" / "net" / "flent"
    card = loaders.load(folder / "v4-tcp_1up_noping-cpu.flent.gz")
    veth = loaders.load(folder / "v4-rrul_be-sockstats-trimmed.flent.gz")
    assert card.facts["link_speed"] == "10000Mb/s"
    assert "link_speed" not in veth.facts


# ---- real files, changed in one place ------------------------------------------------


def refusal(tmp_path, tool, name, *changes):
    """Return what ``patchstudy load`` says of a captured file with changes."""
    text = loaders.read(GOLDEN / tool / name).text
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / name.removesuffix(".gz")
    path.write_text(text)
    with pytest.raises(CaptureError) as caught:
        loaders.load(path)
    return str(caught.value)


def test_an_interval_of_iperf3_above_any_link_names_its_time(tmp_path):
    content = json.loads((GOLDEN / "iperf3" / "v312-tcp-fwd.json").read_bytes())
    content["intervals"][1]["sum"]["bytes"] = 10**15
    path = tmp_path / "run.json"
    path.write_text(json.dumps(content))
    with pytest.raises(CaptureError) as caught:
        loaders.load(path)
    assert "send_rate 8.00214e+15 at 1.00036-2.0001 s" in str(caught.value)
    assert " s is above 10 Tbit/s; a wrong unit, or a run of no length?" in str(
        caught.value
    )


def test_a_cpu_of_netperf_above_all_of_it_is_no_missing_cpu(tmp_path):
    found = refusal(
        tmp_path,
        "netperf",
        "v270-tcp_stream-cpu-localonly.txt",
        ("100.00   -1.00", "140.00   -1.00"),
    )
    assert "cpu_busy 1.4 side=local" in found
    assert "outside 0 to 1; a percentage" in found


def test_a_flent_run_above_its_card_names_the_link(tmp_path):
    found = refusal(
        tmp_path,
        "flent",
        "v4-cap-tcp_nup-3-sockstats.flent.gz",
        ('"driver": null', '"driver": "r8169"'),
        ('"link_params": {', '"link_params": {"speed": "10Mb/s", '),
    )
    assert "above the link's 1e+07 bit/s, which the file tells" in found
    assert "traffic that stayed on the machine?" in found
