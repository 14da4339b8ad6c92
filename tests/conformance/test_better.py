"""Full answers in the place of recorded ones: their loops agree with Kafka Streams where it is right."""

from __future__ import annotations

import json

import pytest

from tests.conformance import brute_force_tables, recorded
from tests.conformance.better import BETTER, REASONS
from tests.conformance.on_close import closes_windows, with_every_window
from tests.conformance.recorded import Case
from tests.conformance.test_driver import FAMILIES

pytestmark = recorded.needed


def every_case() -> list[Case]:
    return [case for family in FAMILIES for case in recorded.as_recorded(family)]


def without_tombstones_of_nothing(rows: recorded.Rows) -> recorded.Rows:
    """The rows but those that delete a key which has no row."""
    present: set[str] = set()
    rest = []
    for row in rows:
        if row[3] is not None or row[2] in present:
            rest.append(row)
        (present.discard if row[3] is None else present.add)(row[2])
    return rest


def of_table(rows: recorded.Rows) -> recorded.Rows:
    return [row for row in rows if row[1] == "out"]


def test_each_case_is_one_of_the_recorded_and_has_its_reason() -> None:
    assert BETTER.keys() <= {case["name"] for case in every_case()}
    assert BETTER.keys() == REASONS.keys()


def test_the_recorded_output_differs_by_tombstones_of_rows_that_never_were() -> None:
    for case in every_case():
        if BETTER.get(case["name"]) is brute_force_tables.full_answer:
            with_fault = of_table(case["expected"]["output_uncached"])
            full = of_table(brute_force_tables.full_answer(case)["expected"]["output_uncached"])
            assert with_fault != full == without_tombstones_of_nothing(with_fault)


@pytest.mark.parametrize("family", ["tumbling", "hopping", "sliding", "session", "window_close"])
def test_the_full_answer_is_the_recorded_one_and_what_is_lost_there(family: str) -> None:
    cases = [case for case in recorded.as_recorded(family) if closes_windows(case)]
    assert cases
    for case in cases:
        every = set(map(json.dumps, recorded.wanted(with_every_window(case), cached=True)[0]))
        emitted = [set(map(json.dumps, recorded.wanted(case, cached=cached)[0])) for cached in (True, False)]
        assert all(rows <= every for rows in emitted), case["name"]
        assert any(rows != every for rows in emitted) == (case["name"] in BETTER), case["name"]


@pytest.mark.parametrize("family", ["aggregate", "stateless"])
def test_the_loops_give_what_kafka_streams_gives(family: str) -> None:
    """Its driver commits after each record: where it is at fault without the cache, it shows all updates with it."""
    view = recorded.replay().by_step_and_topic
    compared = [case for case in recorded.as_recorded(family) if brute_force_tables.is_within_reach(case)]
    assert len(compared) > 20
    for case in compared:
        rows, _ = recorded.wanted(case, cached=case["name"] in BETTER)
        assert view(brute_force_tables.output(case)) == view(rows), case["name"]
