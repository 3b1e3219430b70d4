"""Loaders that give facts of the machine and its set-up, and no measurement."""

import csv
import json
from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import LOADERS, load
from patchstudy.records import Capture, RawFile

GOLDEN = Path(__file__).parent / "golden" / "loaders"


def read(tool: str, text: str) -> Capture:
    raw = RawFile.of(Path("file"), text.encode())
    assert [name for name, one in LOADERS.items() if one.sniff(raw)] == [tool]
    return LOADERS[tool].load(raw)


def expected(shared: Path, tool: str) -> list[tuple[Path, dict]]:
    folder = shared / "corpus/sys"
    with (folder / "MANIFEST.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["tool"] == tool]
    return [(folder / row["path"], json.loads(row["expected"])) for row in rows]


def test_a_driver_is_told_with_its_interface():
    text = "# ethtool -i eth0\ndriver: sfc\nversion: 4.1\nfirmware-version: 6.2 rx0\n"
    capture = read("ethtool_i", text + "expansion-rom-version:\n")
    assert capture.facts == {
        "interface": "eth0",
        "driver": "sfc",
        "version": "4.1",
        "firmware-version": "6.2 rx0",
        "expansion-rom-version": "",
    }


def test_drivers_of_two_calls_are_refused():
    one = "driver: veth\nversion: 1.0\n"
    with pytest.raises(CaptureError, match=r"file:3: 'driver: veth' is not a new key"):
        read("ethtool_i", one + one)


TEXT = (
    "Features for hr1:\nrx-gro: on\n\ttx-tso: off [fixed]\nrx-lro: off [requested on]\n"
)
JSON = """[ { "ifname": "hr1",
 "rx-gro": {"active": true, "fixed": false, "requested": true},
 "tx-tso": {"active": false, "fixed": true, "requested": false},
 "rx-lro": {"active": false, "fixed": false, "requested": true} } ]"""


@pytest.mark.parametrize("text", [TEXT, JSON, f"# ethtool -k hr1\n{TEXT}"])
def test_features_are_the_same_in_every_form(text):
    assert read("ethtool_k", text).facts == {
        "interface": "hr1",
        "features": {"rx-gro": "on", "tx-tso": "off", "rx-lro": "off"},
        "fixed": ["tx-tso"],
        "requested": ["rx-lro"],
    }


def test_a_feature_that_the_driver_does_not_tell_is_absent():
    text = "Offload parameters for eth0:\nCannot get device rx csum settings: no\n"
    facts = read("ethtool_k", text + "tcp segmentation offload: on\n").facts
    assert facts["features"] == {"tcp segmentation offload": "on"}


def test_a_feature_that_is_neither_on_nor_off_is_refused():
    with pytest.raises(CaptureError, match=r"file:2: 'rx-gro: o' is not a new feature"):
        read("ethtool_k", "Features for hr1:\nrx-gro: o\n")


def test_values_of_several_lines_are_joined():
    capture = load(GOLDEN / "ethtool_settings" / "cap-veth-default.txt")
    assert capture.facts["interface"] == "hr1"
    assert capture.facts["settings"]["Speed"] == "10000Mb/s"
    modes = (
        "Settings for a:\n\tSupported link modes:   10baseT/Half\n\t\t100baseT/Full\n"
    )
    settings = read("ethtool_settings", modes).facts["settings"]
    assert settings == {"Supported link modes": "10baseT/Half 100baseT/Full"}


def test_a_heading_stands_before_the_keys_below_it():
    settings = load(GOLDEN / "ethtool_settings" / "cap-veth-l.txt").facts["settings"]
    assert settings["Pre-set maximums: RX"] == "2"
    assert settings["Current hardware settings: RX"] == "1"


def test_lines_of_ethtool_without_a_key_are_the_value_of_the_one_above():
    settings = load(GOLDEN / "ethtool_settings" / "cap-T.txt").facts["settings"]
    assert settings == {
        "Capabilities": "software-transmit software-receive software-system-clock",
        "PTP Hardware Clock": "none",
        "Hardware Transmit Timestamp Modes": "none",
        "Hardware Receive Filter Modes": "none",
    }


def test_the_receive_flow_hash_is_read_with_its_rings():
    text = (
        "RX flow hash indirection table for eth0 with 2 RX ring(s):\n"
        "    0:      0     1     0     1\n    4:      0     1     0     1\n"
        "RSS hash key:\n6d:5a:56:da:25\nRSS hash function:\n    toeplitz: on\n"
    )
    facts = read("ethtool_settings", text).facts
    assert (facts["interface"], facts["rx_rings"]) == ("eth0", 2)
    assert facts["settings"] == {
        "0": "0 1 0 1",
        "4": "0 1 0 1",
        "RSS hash key": "6d:5a:56:da:25",
        "RSS hash function: toeplitz": "on",
    }
    none = load(GOLDEN / "ethtool_settings" / "cap-x-none.txt").facts["settings"]
    assert none["answer"] == "Operation not supported"


@pytest.mark.parametrize(
    ("keys", "title", "settings"),
    [
        ('"rx-max": 8192, "rx": 1024, "tx-push": false', "Ring parameters",
         {"rx-max": "8192", "rx": "1024", "tx-push": "off"}),
        ('"combined-max": 8, "combined": 4', "Channel parameters",
         {"combined-max": "8", "combined": "4"}),
        ('"adaptive-rx": true, "rx-usecs": 3, "tx-frames": null',
         "Coalesce parameters",
         {"adaptive-rx": "on", "rx-usecs": "3", "tx-frames": "n/a"}),
        ('"rss-indirection-table": [0, 1], "rss-hash-function": {"xor": false}',
         "RX flow hash indirection table",
         {"rss-indirection-table": "0 1", "rss-hash-function: xor": "off"}),
    ],
)  # fmt: skip
def test_settings_of_ethtool_are_read_as_json(keys, title, settings):
    facts = read("ethtool_settings", f'[ {{"ifname": "eth0", {keys}}} ]').facts
    assert (facts["interface"], facts["title"]) == ("eth0", title)
    assert facts["settings"] == settings


def test_two_answers_of_ethtool_as_json_are_refused():
    one = '{"ifname": "eth0", "rx-max": 1}'
    with pytest.raises(CaptureError, match="several answers"):
        read("ethtool_settings", f"[{one}, {one}]")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("netlink error: Operation not supported\n", id="netlink"),
        pytest.param("ethtool: bad command line argument(s)\nFor more\n", id="usage"),
    ],
)
def test_an_answer_that_is_an_error_is_told(text):
    with pytest.raises(CaptureError, match=f"ethtool answered '{text[:20]}"):
        read("ethtool_settings", text)


def test_answers_of_ethtool_are_those_of_the_corpus(shared):
    for path, wanted in expected(shared, "ethtool"):
        if "driver" in wanted:
            facts = load(path).facts
            told = ("driver", "version", "firmware-version")
            assert [facts[key] for key in told] == list(wanted.values())


@pytest.mark.parametrize("name", ["cap.txt", "cap-J.json"])
def test_lscpu_tells_the_same_as_text_and_as_json(name):
    facts = load(GOLDEN / "lscpu" / name).facts
    assert facts["number_of_cpus"] == 2
    assert facts["lscpu"]["Model name"] == "AMD EPYC"
    assert facts["lscpu"]["BogoMIPS"] == "4890.86"


def test_nested_fields_of_lscpu_stand_side_by_side():
    inner = (
        '{"field":"Model name:","data":"A","children":[{"field":"Model:","data":"1"}]}'
    )
    text = f'{{"lscpu":[{{"field":"CPU(s):","data":"4"}},{inner}]}}'
    facts = read("lscpu", text).facts
    assert facts["lscpu"] == {"CPU(s)": "4", "Model name": "A", "Model": "1"}


def test_the_table_of_lscpu_has_a_row_a_cpu():
    facts = load(GOLDEN / "lscpu" / "cap-p.csv").facts
    assert facts["number_of_cpus"] == 2
    assert facts["topology"][1]["Core"] == "1"
    assert "" not in facts["topology"][1]


@pytest.mark.parametrize(
    ("text", "release", "machine"),
    [
        pytest.param(
            "Linux vm 6.18.44 #1 SMP PREEMPT_DYNAMIC @0 x86_64 GNU/Linux\n",
            "6.18.44",
            "x86_64",
            id="Debian",
        ),
        pytest.param(
            "Linux r 5.4.143 #0 SMP Tue Aug 31 22:20:08 2021 mips GNU/Linux\n",
            "5.4.143",
            "mips",
            id="OpenWrt",
        ),
        pytest.param(
            "Linux m 2.6.18-194.e15PAE #1 SMP Fri Apr 2 2010 i686 i686 i386 GNU/Linux",
            "2.6.18-194.e15PAE",
            "i686",
            id="processor and platform",
        ),
        pytest.param("Linux m 6.1.0 #1 SMP newarch\n", "6.1.0", None, id="unknown"),
    ],
)
def test_uname_tells_release_and_machine_but_not_the_host(text, release, machine):
    facts = read("uname", text).facts
    assert (facts["release"], facts.get("machine")) == (release, machine)
    assert "vm" not in facts.values()


def test_proc_version_tells_the_compiler():
    text = (
        "Linux version 5.8.0 (b@h) (gcc (U 10.3) 10.3, GNU ld (B) 2.35) #71 SMP Tue\n"
    )
    facts = read("uname", text).facts
    assert facts["compiler"] == "gcc (U 10.3) 10.3, GNU ld (B) 2.35"
    assert facts["version"] == "#71 SMP Tue"


def test_options_of_a_kernel_are_read():
    text = "# Automatically generated file; DO NOT EDIT.\n# Linux/x86 6.18.44 Kernel\n"
    text += 'CONFIG_HZ=250\n# CONFIG_NET is not set\nCONFIG_CC="gcc a=b"\n'
    facts = read("kernel_config", text).facts
    assert facts["kernel"] == "6.18.44"
    options = {"CONFIG_HZ": "250", "CONFIG_NET": "n", "CONFIG_CC": '"gcc a=b"'}
    assert facts["options"] == options


def test_settings_of_sysctl_are_read_and_its_errors_left_out():
    text = "net.core.rmem_max = 4194304\nsysctl: reading key x\nnet.a.b = 1\t2\n"
    facts = read("sysctl", text).facts
    assert facts["sysctl"] == {"net.core.rmem_max": "4194304", "net.a.b": "1\t2"}


def test_memory_is_a_gauge_in_bytes():
    capture = read("meminfo", "MemTotal:       2 kB\nHugePages_Total:       3\n")
    found = [(one.metric, one.value, one.labels) for one in capture.measurements]
    gauge = {"kind": "gauge"}
    assert found == [
        ("event:MemTotal", 2048, gauge),
        ("event:HugePages_Total", 3, gauge),
    ]


def test_what_all_cpus_agree_in_is_told():
    block = "processor\t: {}\nmodel name\t: AMD\ncore id\t\t: {}\nBogoMIPS\t: 5\n\n"
    facts = read("cpuinfo", block.format(0, 0) + block.format(1, 1)).facts
    assert facts["number_of_cpus"] == 2
    assert facts["cpuinfo"] == {"model name": "AMD", "BogoMIPS": "5"}


@pytest.mark.parametrize(
    "start",
    [
        pytest.param("[    1.000000] ", id="plain"),
        pytest.param("kern  :warn  : [    1.000000] ", id="levels"),
        pytest.param("[Mon Nov 30 13:41:23 2026] ", id="dates"),
        pytest.param("<4>[    1.000000] ", id="raw"),
        pytest.param("[    1.000000] [    T1] ", id="threads"),
    ],
)
def test_faults_that_the_kernel_reports_are_told(start):
    lines = (
        "Linux version 6.1.0 (b@h) (gcc) #1 SMP",
        "eth0: up",
        "WARNING: CPU: 0 PID: 1",
    )
    facts = read("dmesg", "".join(f"{start}{line}\n" for line in lines)).facts
    assert facts["release"] == "6.1.0"
    assert facts["number_of_lines"] == 3
    assert facts["splats"] == ["WARNING: CPU: 0 PID: 1"]


def test_facts_of_the_machine_are_those_of_the_corpus(shared):
    for path, wanted in expected(shared, "sysinfo"):
        facts = load(path).facts
        if "release" in wanted:
            assert facts["release"] == wanted["release"]
        if "set_y" in wanted:
            options = list(facts["options"].values())
            told = [options.count(value) for value in "ymn"]
            assert told == [wanted["set_y"], wanted["set_m"], wanted["not_set"]]


def test_numbers_of_lines_are_those_of_the_corpus(shared):
    folder = shared / "corpus/sys/sysinfo"
    assert len(load(folder / "cap-sysctl-net.txt").facts["sysctl"]) == 453
    assert len(load(folder / "cap-meminfo.txt").measurements) == 54


# ---- tables of lscpu, short answers, what a terminal adds ----------------------------

EXTENDED = "CPU NODE CORE L1d:L1i:L2:L3 ONLINE MAXMHZ\n  0    0    0 0:0:0:0 yes 3400\n"
OFFLINE = "  1    -    - - no -\n"
ROWS_JSON = """{"cpus": [
 {"cpu": 0, "node": 0, "core": 0, "l1d:l1i:l2:l3": "0:0:0:0", "online": true},
 {"cpu": 1, "node": null, "core": null, "l1d:l1i:l2:l3": "-", "online": false} ]}"""


def test_the_table_of_lscpu_for_people_tells_the_cpus_that_are_online():
    facts = read("lscpu", EXTENDED + OFFLINE).facts
    assert facts["number_of_cpus"] == 1
    assert facts["topology"][1] == {"CPU": "1", "ONLINE": "no"}
    assert facts["topology"][0]["L1d:L1i:L2:L3"] == "0:0:0:0"


def test_the_table_of_lscpu_as_json_is_what_the_text_is():
    facts = read("lscpu", ROWS_JSON).facts
    assert facts["number_of_cpus"] == 1
    assert facts["topology"][0]["online"] == "yes"
    assert facts["topology"][1] == {"cpu": "1", "online": "no"}


def test_a_row_of_lscpu_that_is_cut_is_refused():
    with pytest.raises(CaptureError, match="file:3: 2 values for 6 columns"):
        read("lscpu", EXTENDED + "  1    0\n")


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Linux\n", {}),
        ("6.1.0-18-amd64\n", {"release": "6.1.0-18-amd64"}),
        ("Linux 6.1.0\n", {"release": "6.1.0"}),
        ("Linux 5.4.0 armv7l\n", {"release": "5.4.0", "machine": "armv7l"}),
    ],
)
def test_short_answers_of_uname_are_read(text, facts):
    assert read("uname", text).facts == {"sysname": "Linux", **facts}


@pytest.mark.parametrize("text", ["6.1.0\n", "Linux kernel\n", "1.2.3-4\n"])
def test_the_version_of_anything_is_not_taken_for_a_kernel(text):
    assert not LOADERS["uname"].sniff(RawFile.of(Path("file"), text.encode()))


@pytest.mark.parametrize(
    ("text", "up_min", "load_average"),
    [
        (" 21:10:04 up  4:54,  0 user,  load average: 18.66, 2.00, 0.05\n", 294,
         [18.66, 2.0, 0.05]),
        (" 21:10:04 up 3 days, 12 min,  2 users,  load average: 0,18, 0,21, 0,15\n",
         3 * 1440 + 12, [0.18, 0.21, 0.15]),
        (" 21:10:04 up 2 min,  load average: 0.00, 0.01, 0.05\n", 2, [0.0, 0.01, 0.05]),
    ],
)  # fmt: skip
def test_the_line_of_uptime_gives_facts_and_no_reading(text, up_min, load_average):
    capture = read("uptime", text)
    assert capture.facts == {"up_min": up_min, "load_average": load_average}
    assert capture.measurements == ()


def test_caches_of_slabinfo_are_told_by_name():
    head = "slabinfo - version: 2.1\n# name            <active_objs> <num_objs>\n"
    row = "kmalloc-2k   10  16  2048   16    8 : tunables    0    0    0 : slabdata 1\n"
    facts = read("slabinfo", head + row).facts
    told = {"active_objs": 10, "num_objs": 16, "objsize": 2048}
    assert facts == {"slabinfo": {"kmalloc-2k": told}}
    with pytest.raises(CaptureError, match="file:3: 'kmalloc-2k 10' is not a cache"):
        read("slabinfo", head + "kmalloc-2k 10\n")
    with pytest.raises(CaptureError, match="holds no cache"):
        read("slabinfo", head)


@pytest.mark.parametrize(
    "prompt",
    ["root@dut:~# ", "tester@box:/tmp$ ", "[root@box ~]# ", "# ", "sh-5.1# exit\n"],
)
def test_a_prompt_at_the_end_is_no_part_of_the_last_value(prompt):
    text = "Settings for eth0:\n\tSpeed: 1000Mb/s\n\tLink detected: yes\n"
    assert read("ethtool_settings", text + prompt).facts["settings"] == {
        "Speed": "1000Mb/s",
        "Link detected": "yes",
    }
    counters = read("ethtool_s", "NIC statistics:\n     rx: 5\n" + prompt)
    assert [one.value for one in counters.measurements] == [5]
    assert counters.caveats == ()


CACHES = """\
NAME ONE-SIZE ALL-SIZE WAYS TYPE        LEVEL SETS PHY-LINE COHERENCY-SIZE
L1d       32K      64K    8 Data            1   64        1             64
L2       1.3M       2M   20 Unified         2 1024        1             64
"""
CACHES_JSON = """\
{
   "caches": [
      {
         "name": "L1d",
         "one-size": "32K",
         "ways": 8
      }
   ]
}
"""


def test_the_caches_of_lscpu_are_facts_as_text_and_as_json():
    caches = read("lscpu", CACHES).facts["caches"]
    assert [(one["NAME"], one["ONE-SIZE"], one["WAYS"]) for one in caches] == [
        ("L1d", "32K", "8"), ("L2", "1.3M", "20"),
    ]  # fmt: skip
    (one,) = read("lscpu", CACHES_JSON).facts["caches"]
    assert one == {"name": "L1d", "one-size": "32K", "ways": "8"}


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        pytest.param("up 5 minutes\n", {"up_min": 5}, id="minutes"),
        pytest.param("up 2 days, 1 minute\n", {"up_min": 2881}, id="no hours"),
        pytest.param(
            "up 2 weeks, 3 days, 4 hours\n", {"up_min": 24720}, id="no minutes"
        ),
        pytest.param(
            "2026-11-13 08:12:44\n", {"up_since": "2026-11-13 08:12:44"}, id="-s"
        ),
    ],
)
def test_uptime_for_people_and_since_when(text, facts):
    assert read("uptime", text).facts == facts
