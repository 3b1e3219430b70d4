"""Numbers in mails: every mail here is made up."""

import pytest

from patchstudy import mails, patchfile

NETPERF = """\
MIGRATED TCP STREAM TEST from 0.0.0.0 () port 0 AF_INET to made.up () port 0 AF_INET
Recv   Send    Send
Socket Socket  Message  Elapsed
Size   Size    Size     Time     Throughput
bytes  bytes   bytes    secs.    10^6bits/sec

 87380 327680 327680    {}      {}
"""
IPERF = """\
[ ID] Interval           Transfer     Bandwidth       Retr
[  4]   0.00-{0}.00  sec  49.9 MBytes  {1} Mbits/sec  197         sender
[  4]   0.00-{0}.00  sec  49.3 MBytes  {2} Mbits/sec            receiver
"""


def told(text, subject="[PATCH] made_up: x"):
    data = f"From: A Person <a@example.org>\nSubject: {subject}\n\n{text}\n".encode()
    return mails.told(patchfile.read_all(data))


@pytest.mark.parametrize(
    ("text", "metric", "change"),
    [
        ("It went from 200 to 300 Mbit/s.", "throughput", "200 Mbit/s -> 300 Mbit/s"),
        ("NAT: 362 -> 140 Mbps", "throughput", "362 Mbit/s -> 140 Mbit/s"),
        (
            "Rate increased from under 30 Mb/s to the expected\n~1 Gb/s.",
            "throughput",
            "about 30 Mbit/s -> about 1 Gbit/s",
        ),
        (
            "Before: 1.7 Mpps, after: 2.3 Mpps.",
            "packet_rate",
            "1.7 Mpacket/s -> 2.3 Mpacket/s",
        ),
        ("Latency dropped from 1,250 us to 980 us.", "rtt_mean", "1250 us -> 980 us"),
        ("This bumps NAT speed by ~95%.", "throughput", "about +95 %"),
        ("Throughput is reduced by 12.5 %.", "throughput", "-12.5 %"),
        ("Throughput is 3 times higher.", "throughput", "3x"),
    ],
)
def test_a_sentence_of_before_and_after(text, metric, change):
    found = told(text)
    (said,) = found.said
    assert (said.metric, said.change) == (metric, change)
    assert found.rest == ()


@pytest.mark.parametrize(
    "text",
    [
        "With A I got ~300 Mbit/s, with B ~200.",
        "It takes 14.2 s for 33211099 buffers.",
        "Moves from 5.10 to 5.15.",
        "Reduces CPU usage by 30% at the same throughput.",
        "Up to 50% more throughput.",
        "Throughput changes by 5%.",
        "Throughput rises by 5% or drops by 3%.",
    ],
)
def test_what_does_not_say_before_and_after_stays_as_it_is(text):
    assert told(text) == mails.Told(said=(), rest=(text,))


def test_pasted_netperf_is_read_by_its_loader():
    text = (
        f"before patch:\n{NETPERF.format('341.79', '0.05')}\n"
        f"after patch:\n{NETPERF.format('1.29', '12.54')}\nThanks\n"
    )
    found = told(text)
    (said,) = found.said
    assert said.change == "0.05 Mbit/s -> 12.54 Mbit/s"
    assert said.notes == ("the two tests lasted 341.79 and 1.29 s",)
    assert any("341.79" in line for line in said.quote)
    assert found.rest == ()


def test_pasted_iperf_gives_what_the_receiver_got_and_the_percentage_its_values():
    text = (
        f"Speeds RX up: throughput improves by 30%.\n\nBefore:\n"
        f"{IPERF.format(10, '33.7', '33.5')}\nAfter:\n"
        f"{IPERF.format(10, '43.3', '43.1')}"
    )
    rate, retransmits, percent = told(text).said
    assert rate.change == "33.5 Mbit/s -> 43.1 Mbit/s"
    assert (retransmits.metric, retransmits.change) == ("retransmits", "197 -> 197")
    assert (percent.change, percent.baseline) == ("+30 %", "33.5 Mbit/s")


@pytest.mark.parametrize(
    "table",
    [
        "test   before Mbit/s   after Mbit/s\nNAT          362            140\n",
        "| test | before | after |\n|---|---|---|\n| NAT Mbit/s | 362 | 140 |\n",
    ],
)
def test_a_row_of_a_table_with_units(table):
    (said,) = told(table).said
    assert said.change == "362 Mbit/s -> 140 Mbit/s"


def test_a_table_without_units_is_no_claim():
    found = told("Target  | before | after |\nRPi     | 941    | 942   |\n")
    assert found.said == ()
    assert found.rest == ("RPi     | 941    | 942   |",)


def test_quotes_people_diffstat_and_names_with_digits_are_left_out():
    text = (
        "On Thu, 7 Jan 2027, A Person <a@example.org> wrote:\n> from 1 to 2 Mbit/s\n\n"
        "The lan78xx and commit 605ad7f184b6 differ.\nA Person (6):\n"
        " drivers/net/x.c | 3 ++-\n\nAcked-by: B Person <b@example.org>\n"
    )
    assert told(text, "Re: [PATCH] made_up: x") == mails.Told(said=(), rest=())


def test_an_address_and_the_name_before_it_are_masked():
    (line,) = told("Seen with 3 cards by A B Person <a@example.org> too.").rest
    assert line == "Seen with 3 cards by ... too."
