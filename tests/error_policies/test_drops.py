"""Dropped records: every one is counted, the log gets the first of a kind and then sums."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

import kstreams as ks
from kstreams.kernel.clock import ManualClock
from kstreams.processor.context.failures import Drops
from kstreams.testing import TopologyTestDriver


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    with caplog.at_level(logging.WARNING, "kstreams.processor"):
        found: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
        logger = logging.getLogger("kstreams.processor")
        logger.addHandler(handler)
        yield found
        logger.removeHandler(handler)


def test_the_first_is_told_with_its_place_and_the_others_in_sums_by_the_clock(lines: list[str]) -> None:
    clock = ManualClock()
    drops = Drops("task 0_1", clock, 60_000)
    for offset in range(1000):
        drops.add("COUNT", "null key", lambda offset=offset: f"in-1@{offset}")  # type: ignore[misc]
        drops.report_if_due()
    assert lines == ["task 0_1: COUNT dropped a record at in-1@0: null key"]
    clock.advance(60_000)
    drops.report_if_due()
    drops.report_if_due()
    assert lines[1:] == ["task 0_1: COUNT dropped 999 more records: null key"]
    assert drops.counts == {("COUNT", "null key"): 1000}


def test_operators_and_reasons_are_told_apart(lines: list[str]) -> None:
    drops = Drops("task 0_1", ManualClock(), 60_000)
    for node in ("A", "B"):
        for reason in ("late", "null key"):
            drops.add(node, reason, lambda: "in-0@1", 3)
    assert len(lines) == 4
    assert "dropped 3 records at in-0@1: late" in lines[0]


def test_what_was_not_told_is_told_at_the_end(lines: list[str]) -> None:
    drops = Drops("task 0_1", ManualClock(), 0)
    for _ in range(3):
        drops.add("A", "late", lambda: "in-0@1")
    drops.report_if_due()
    assert len(lines) == 1
    drops.report()
    assert lines[1:] == ["task 0_1: A dropped 2 more records: late"]


def test_a_flood_of_dropped_records_is_two_lines_of_a_run(lines: list[str]) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().count().to_stream().to("out", value=int)
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for _ in range(500):
            topic.pipe_input(None, "v", timestamp=1)
        assert list(driver.dropped.values()) == [500]
    assert len(lines) == 2
    assert "499 more records" in lines[1]
