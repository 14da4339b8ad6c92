"""Which place a result has that an operator held back: that of the record that released it, and its own headers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import kstreams as ks
from kstreams.testing import TopologyTestDriver

PLACE = ks.struct(topic=ks.topic, offset=ks.offset, header=ks.header("h"))


def places(table: ks.KTable[str, int], builder: ks.StreamsBuilder, cache: int) -> list[Any]:
    """Topic, offset and header of every result of two records."""
    table.to_stream().map_values(PLACE, value=dict).to("out", key=str)
    with TopologyTestDriver(builder.build(), {"statestore.cache.max.bytes": cache}) as driver:
        source = driver.create_input_topic("in", key=str, value=str)
        source.pipe_input("a", "v", 0, [("h", b"first")])
        source.pipe_input("b", "v", 5_000, [("h", b"second")])
        return [value for _, value in driver.create_output_topic("out", key=str, value=dict).read_key_values()]


def counts(builder: ks.StreamsBuilder) -> ks.KTable[str, int]:
    return builder.stream("in", key=str, value=str).group_by_key().count()


def test_an_update_has_the_place_of_its_record() -> None:
    builder = ks.StreamsBuilder()
    assert places(counts(builder), builder, 0) == [
        {"topic": "in", "offset": 0, "header": "first"},
        {"topic": "in", "offset": 1, "header": "second"},
    ]


def test_an_update_that_the_record_cache_emits_has_no_place() -> None:
    builder = ks.StreamsBuilder()
    assert places(counts(builder), builder, 1_000_000) == [
        {"topic": None, "offset": None, "header": "first"},
        {"topic": None, "offset": None, "header": "second"},
    ]


def test_an_update_that_suppress_held_back_has_the_place_of_the_record_that_released_it() -> None:
    builder = ks.StreamsBuilder()
    held = counts(builder).suppress(ks.Suppressed.until_time_limit(timedelta(seconds=1)))
    assert places(held, builder, 0) == [{"topic": "in", "offset": 1, "header": "first"}]
