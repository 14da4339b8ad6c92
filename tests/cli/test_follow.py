"""`kstreams consume` as a tail: shows records as they come, waits for topics, ends when it is told to."""

from __future__ import annotations

import selectors
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = str(Path(sys.executable).with_name("kstreams"))


@pytest.fixture
def follow(kstreams):
    """Starts a reader; it is ended with the test."""
    started = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        started.append(subprocess.Popen([COMMAND, "consume", *arguments], stdout=pipe, stderr=pipe, text=True))
        return started[-1]

    yield start
    for reader in started:
        reader.kill()
        reader.communicate()


def show_one(kstreams, reader: subprocess.Popen[str], topic: str = "lines") -> str:
    """The first line that a reader shows, of records that are written until it does."""
    with selectors.DefaultSelector() as ready:  # takes any descriptor: the process of the tests has many open
        ready.register(reader.stdout, selectors.EVENT_READ)
        while not ready.select(0.2):
            kstreams.ok("produce", topic, stdin="new\n")
    return reader.stdout.readline()


def test_follow_begins_with_the_next_record_and_shows_each_as_it_comes(kstreams, follow):
    kstreams.ok("topics", "create", "lines")
    kstreams.ok("produce", "lines", stdin="old\n")
    reader = follow("lines", "--follow")
    assert show_one(kstreams, reader).endswith("\tnew\n")
    kstreams.ok("produce", "lines", stdin="newer\n")
    assert "newer\n" in iter(lambda: reader.stdout.readline().split("\t")[-1], "")


def test_follow_waits_for_a_topic_that_is_made_later_and_shows_all_of_it(kstreams, follow):
    reader = follow("lines", "--follow")
    assert "Waiting for it" in reader.stderr.readline()
    kstreams.ok("topics", "create", "lines")
    kstreams.ok("produce", "lines", stdin="first\n")
    assert reader.stdout.readline().endswith("first\n")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_silently_with_the_status_of_the_signal(kstreams, follow, number, status):
    kstreams.ok("topics", "create", "lines")
    reader = follow("lines")
    show_one(kstreams, reader)
    reader.send_signal(number)
    assert reader.wait(60) == status
    assert reader.stderr.read() == ""


def test_it_ends_when_nobody_reads_its_output_even_if_nothing_comes(kstreams, follow):
    kstreams.ok("topics", "create", "lines")
    reader = follow("lines", "-f")
    show_one(kstreams, reader)
    reader.stdout.close()
    assert reader.wait(60) == 0
    assert reader.stderr.read() == ""


def test_deleting_the_topic_ends_it_with_one_sentence(kstreams, follow):
    kstreams.ok("topics", "create", "lines")
    reader = follow("lines")
    show_one(kstreams, reader)
    kstreams.ok("topics", "delete", "lines", "--force")
    assert reader.wait(60) == 1
    assert reader.stderr.read() == "kstreams: The topic 'lines' was deleted while it was read.\n"


def test_what_excludes_each_other_is_asked_wrongly(kstreams):
    kstreams.ok("topics", "create", "lines")
    assert kstreams("consume", "lines", "--follow", "--until-end").status == 2
    assert kstreams("consume", "lines", "-p", "0", "--offset", "0", "--from-beginning").status == 2


def test_an_offset_that_is_not_there_names_those_that_are(kstreams):
    kstreams.ok("topics", "create", "lines")
    kstreams.ok("produce", "lines", stdin="a\nb\n")
    refused = kstreams("consume", "lines", "--until-end", "-p", "0", "--offset", "3")
    assert refused.status == 1
    assert "lines-0 has no offset 3: its records begin at 0 and the next one is 2" in refused.err
