"""A record that comes back by several topics: the driver takes them in the order of Kafka Streams' own (recorded)."""

from __future__ import annotations

import pytest

import kstreams as ks
from kstreams.testing import TopologyTestDriver


@pytest.mark.parametrize(("ways", "order"), [(2, "01"), (3, "021"), (4, "0321"), (5, "04321")])
def test_topics_with_records_of_one_time_go_in_the_order_of_a_java_heap(ways, order):
    builder = ks.StreamsBuilder()
    words = builder.stream("in", key=str, value=str)
    for way in range(ways):
        words.repartition(name=f"way-{way}").map_values(lambda value, way=way: f"{value}{way}", value=str).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "x", timestamp=5)
        out = driver.create_output_topic("out", key=str, value=str)
        assert [record.value for record in out.read_records()] == [f"x{way}" for way in order]
