"""What `all` of a store shows of windows and sessions that have expired: with the record cache, and without it."""

from __future__ import annotations

from typing import Any

import pytest

import kstreams as ks
from kstreams.testing import TopologyTestDriver
from tests.dsl.driven import UNCACHED
from tests.windows.aggregating import ON_CLOSE, ON_UPDATE, windowed

KINDS = [
    pytest.param(ks.TimeWindows(size=10), id="tumbling"),
    pytest.param(ks.TimeWindows(size=10, advance=5), id="hopping"),
    pytest.param(ks.SlidingWindows(difference=10), id="sliding"),
    pytest.param(ks.SessionWindows(gap=10), id="sessions"),
]


def kept(windows: Any, config: dict[str, Any], emit: Any = ON_UPDATE, **how: Any) -> set[str]:
    """The keys that the store of a count shows after records at 5 (key "early") and 500 (key "late")."""
    builder, stream = windowed(windows, emit)
    stream.count(ks.Materialized("store", **how))
    with TopologyTestDriver(builder.build(), {"application.id": "app", **config}) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        topic.pipe_input("early", "v", 5)
        topic.pipe_input("late", "v", 500)
        return {key.key for key, _ in driver.get_state_store("store").all()}


@pytest.mark.parametrize("windows", KINDS)
def test_the_record_cache_shows_what_has_expired_until_its_segment_is_over(windows: Any) -> None:
    assert kept(windows, {}) == {"early", "late"}


@pytest.mark.parametrize("windows", KINDS)
def test_without_the_record_cache_what_has_expired_is_hidden(windows: Any) -> None:
    assert kept(windows, UNCACHED) == {"late"}


@pytest.mark.parametrize("windows", KINDS)
def test_a_table_that_goes_without_the_record_cache_hides_what_has_expired(windows: Any) -> None:
    assert kept(windows, {}, caching=False) == {"late"}


@pytest.mark.parametrize("windows", KINDS)
def test_emission_on_close_without_the_record_cache_hides_what_has_expired(windows: Any) -> None:
    assert kept(windows, UNCACHED, ON_CLOSE) == {"late"}
