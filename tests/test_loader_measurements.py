from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import LOADERS, measurements
from patchstudy.records import Capture, Measurement, RawFile


def read(*lines: str) -> Capture:
    raw = RawFile.of(Path("measurements.csv"), "\n".join([*lines, ""]).encode())
    assert measurements.sniff(raw)
    return measurements.load(raw)


def test_a_row_becomes_a_measurement_in_its_base_unit():
    capture = read(
        "metric,unit,value,device,boot,resolution,exposure",
        "loss,%,1.5,mt7621,,0.5,1000",
    )
    assert capture.measurements == (
        Measurement(
            metric="loss",
            value=0.015,
            labels={"device": "mt7621"},
            exposure=1000.0,
            resolution=0.005,
        ),
    )


def test_a_column_whose_name_has_a_stray_quote_is_missing():
    with pytest.raises(CaptureError, match=r"csv:2: no column 'value'"):
        read('metric,unit,value"', "throughput,Mbit/s,1")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        pytest.param("throughput,Mbps,1", "unknown unit 'Mbps'", id="unit"),
        pytest.param("speed,Mbit/s,1", "unknown metric 'speed'", id="metric"),
        pytest.param(
            "throughput,ms,1", "throughput is measured in bit/s, not in ms", id="other"
        ),
        pytest.param("throughput,Mbit/s,", "value '' is not a number", id="empty"),
        pytest.param("throughput,Mbit/s,nan", "value 'nan' is not", id="nan"),
        pytest.param(
            "throughput,Mbit/s,1_000", "value '1_000' is not", id="underscore"
        ),
        pytest.param('throughput,Mbit/s,"1,5"', "value '1,5' is not", id="comma"),
        pytest.param("throughput,Mbit/s,1,2", "4 cells under 3 columns", id="cells"),
        pytest.param('throughput,Mbit/s,"1', "not CSV", id="open quote"),
    ],
)
def test_a_wrong_row_is_refused_with_its_line(row, problem):
    with pytest.raises(CaptureError, match=f"measurements.csv:[34]: .*{problem}"):
        read("metric,unit,value", "throughput,Mbit/s,1", row)


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(CaptureError, match="need names that differ"):
        read("metric,unit,value,boot,boot", "throughput,Mbit/s,1,1,2")


def test_a_header_alone_is_refused():
    with pytest.raises(CaptureError, match="holds a header but no row"):
        read("metric,unit,value")


def test_a_count_is_not_taken_for_the_output_of_perf():
    table = "metric,unit,value,variant\nretransmits,1,3.0,baseline\n"
    raw = RawFile.of(Path("measurements.csv"), (table + "retransmits,1,2,b\n").encode())
    assert [name for name, one in LOADERS.items() if one.sniff(raw)] == ["measurements"]
