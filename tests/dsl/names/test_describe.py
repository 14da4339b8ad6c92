"""Descriptions: word for word what Kafka Streams prints."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from pathlib import Path

import pytest

import kstreams as ks
from kstreams.processor.topology.describe import string_hash

FOLDER = Path(os.environ.get("KSTREAMS_TEST_CONFORMANCE", Path(__file__).parents[4] / "shared" / "conformance"))
FAMILIES = [
    "stateless",
    "aggregate",
    "table_aggregate",
    "tumbling",
    "hopping",
    "to_table",
    "global_table_join",
    "stream_stream_join",
    "process",
    "source",
    "naming",
    "pipeline",
]


def test_a_grouped_count_falls_into_two_sub_topologies():
    builder = ks.StreamsBuilder()
    lines = builder.stream("in", key=str, value=str)
    lines.group_by(lambda k, v: v, key=str).count().to_stream().to("out")
    assert builder.build().describe() == (
        """Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [in])
      --> KSTREAM-KEY-SELECT-0000000001
    Processor: KSTREAM-KEY-SELECT-0000000001 (stores: [])
      --> KSTREAM-FILTER-0000000005
      <-- KSTREAM-SOURCE-0000000000
    Processor: KSTREAM-FILTER-0000000005 (stores: [])
      --> KSTREAM-SINK-0000000004
      <-- KSTREAM-KEY-SELECT-0000000001
    Sink: KSTREAM-SINK-0000000004 (topic: KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition)
      <-- KSTREAM-FILTER-0000000005

  Sub-topology: 1
    Source: KSTREAM-SOURCE-0000000006 (topics: [KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition])
      --> KSTREAM-AGGREGATE-0000000003
    Processor: KSTREAM-AGGREGATE-0000000003 (stores: [KSTREAM-AGGREGATE-STATE-STORE-0000000002])
      --> KTABLE-TOSTREAM-0000000007
      <-- KSTREAM-SOURCE-0000000006
    Processor: KTABLE-TOSTREAM-0000000007 (stores: [])
      --> KSTREAM-SINK-0000000008
      <-- KSTREAM-AGGREGATE-0000000003
    Sink: KSTREAM-SINK-0000000008 (topic: out)
      <-- KTABLE-TOSTREAM-0000000007

"""
    )


def test_a_global_table_is_a_part_without_tasks():
    builder = ks.StreamsBuilder()
    builder.global_table("airlines", key=str, value=str, materialized="airlines", name="airlines-table")
    assert builder.build().describe() == (
        """Topologies:
   Sub-topology: 0 for global store (will not generate tasks)
    Source: airlines-table-source (topics: [airlines])
      --> airlines-table
    Processor: airlines-table (stores: [airlines])
      --> none
      <-- airlines-table-source
"""
    )


def test_a_pattern_is_shown_as_it_is_and_a_chosen_topic_by_who_chooses():
    def by_key(key, value, context):
        return key

    builder = ks.StreamsBuilder()
    builder.stream(re.compile("in-.*"), key=str, value=str).to(by_key)
    description = builder.build().describe()
    assert "Source: KSTREAM-SOURCE-0000000000 (topics: in-.*)" in description
    assert "Sink: KSTREAM-SINK-0000000001 (extractor class: by_key)" in description


def test_java_hashes_as_java_does():
    assert [string_hash(text) for text in ("", "a", "hello", "€")] == [0, 97, 99162322, 8364]


def replay():
    spec = importlib.util.spec_from_file_location("replay", FOLDER / "replay.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not FOLDER.exists(), reason="the recorded cases are not here")
@pytest.mark.parametrize("family", FAMILIES)
def test_recorded_descriptions_are_met_to_the_byte(family):
    application = replay().Application
    cases = [json.loads(line) for line in (FOLDER / f"{family}.jsonl").read_text().splitlines()]
    assert cases
    for case in cases:
        description = application(case, case.get("config", {})).builder.build().describe()
        assert description == case["expected"]["description"], case["name"]


def test_a_topic_that_nobody_reads_further_is_not_taken_for_a_global_store():
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).repartition(name="unread")
    assert "global" not in builder.build().describe()
