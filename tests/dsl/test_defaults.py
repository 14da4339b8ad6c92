"""What a builder's settings say about sources and tables that say nothing themselves."""

from __future__ import annotations

import pytest

import kstreams as ks
from kstreams.errors import TopologyError
from kstreams.serdes import StringSerde


def test_default_serdes_stand_in_for_types_that_are_not_declared() -> None:
    builder = ks.StreamsBuilder({"default.key.serde": str, "default.value.serde": StringSerde()})
    builder.stream("in").group_by_key().count().to_stream().to("out")
    (source,) = builder.build().sub_topologies[0].sources
    assert repr(source.key) == repr(source.value) == "StringSerde()"


def test_a_declared_type_goes_before_the_default() -> None:
    builder = ks.StreamsBuilder({"default.value.serde": bytes})
    builder.stream("in", key=str, value=int).to("out")
    (source,) = builder.build().sub_topologies[0].sources
    assert repr(source.value) == "IntSerde()"


def test_without_type_and_default_the_error_says_what_to_write() -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in").group_by_key().count()
    with pytest.raises(TopologyError, match=r"test_defaults.py:\d+.*key=<type>"):
        builder.build()


def test_the_default_timestamp_extractor_is_that_of_every_source() -> None:
    builder = ks.StreamsBuilder({"default.timestamp.extractor": lambda record, partition_time: 7})
    builder.stream("in", key=str, value=str).to("out")
    (source,) = builder.build().sub_topologies[0].sources
    assert source.timestamp_extractor is not None
    assert source.timestamp_extractor(None, 0) == 7


@pytest.mark.parametrize(("setting", "place"), [("rocksDB", "rocksdb"), ("in_memory", "memory")])
def test_the_default_store_is_where_tables_live_that_do_not_say(setting: str, place: str) -> None:
    builder = ks.StreamsBuilder({"default.dsl.store": setting})
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    grouped.count(materialized="silent")
    grouped.count(materialized=ks.Materialized("said", store="rocksdb"))
    stores = {store.name: store.store for store in builder.build().sub_topologies[0].stores}
    assert stores == {"silent": place, "said": "rocksdb"}
