"""When punctuators are called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kstreams.errors import TopologyError
from kstreams.processor.api.punctuation import NEVER, Cancellable, Punctuations, next_deadline, schedule_of


def schedule(punctuations, first_ms, interval_ms, callback) -> Cancellable:
    made = schedule_of(interval_ms, callback)
    punctuations.add(first_ms, made)
    return made


def test_a_punctuator_gets_the_current_time_not_its_deadline():
    called, punctuations = [], Punctuations()
    schedule(punctuations, 0, 10, called.append)
    for now in (3, 9, 10, 35, 39, 40):
        punctuations.fire(now)
    assert called == [3, 10, 35, 40]


def test_all_that_are_due_fire_in_order_of_their_deadlines():
    called, punctuations = [], Punctuations()
    schedule(punctuations, 20, 100, lambda now: called.append("late"))
    schedule(punctuations, 10, 100, lambda now: called.append("early"))
    assert punctuations.fire(25)
    assert called == ["early", "late"]


def test_a_cancelled_punctuator_is_called_no_more():
    called, punctuations = [], Punctuations()
    scheduled = schedule(punctuations, 0, 10, called.append)
    scheduled.cancel()
    assert not punctuations.fire(50)
    assert called == []
    assert punctuations.deadline_ms == NEVER


def test_a_punctuator_may_cancel_itself():
    called, punctuations = [], Punctuations()

    def once(now):
        called.append(now)
        scheduled.cancel()

    scheduled = schedule(punctuations, 0, 10, once)
    punctuations.fire(5)
    punctuations.fire(50)
    assert called == [5]


def test_a_punctuator_may_schedule_another():
    called, punctuations = [], Punctuations()
    first = schedule(punctuations, 0, 1_000, lambda now: schedule(punctuations, now + 5, 1_000, called.append))
    punctuations.fire(1)
    first.cancel()
    punctuations.fire(6)
    assert called == [6]


def test_an_interval_below_a_millisecond_is_an_error():
    with pytest.raises(TopologyError, match="at least 1 ms"):
        schedule_of(0, print)


@given(st.integers(0, 10**6), st.integers(1, 10**4), st.integers(0, 10**6))
def test_the_next_deadline_is_the_first_later_time_of_the_same_phase(deadline, interval, late_by):
    now = deadline + late_by
    after = next_deadline(deadline, interval, now)
    assert now < after <= now + interval
    assert (after - deadline) % interval == 0


def test_a_huge_timestamp_does_not_hang():
    called, punctuations = [], Punctuations()
    schedule(punctuations, 0, 1, called.append)
    assert punctuations.fire(2**63 - 2)
    assert len(called) == 1
