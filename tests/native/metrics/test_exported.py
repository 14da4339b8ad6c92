"""What exporters give: text that every parser takes, whatever names there are, of several applications in a process."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import kstreams as ks
from kstreams.metrics.opentelemetry import observe
from kstreams.metrics.prometheus import PrometheusCollector
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.streams import KafkaStreams
from tests.native.metrics.measured import TEXTS
from tests.native.world import World, until

ALIVE, SENSOR = "stream_metrics_alive_stream_threads", "stream_processor_node_metrics_sensor_total"


class Sensing(ks.FixedKeyProcessor[str, str, str]):
    """Has sensors with names that no metric may have, and that are one name where signs are replaced."""

    def init(self, context: ks.FixedKeyProcessorContext[str, str]) -> None:
        names = ("a-b", "a_b", "größe in %", 'say "hi"\\\n', "process", "dropped-records-by-reason", "bad \udc80")
        self.sensors = [context.metrics.add_sensor(name) for name in names]

    def process(self, record: ks.FixedKeyRecord[str, str]) -> None:
        for sensor in self.sensors:
            sensor.record(2)


def sensing() -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).process_values(Sensing, name="sensing", value=str)
    return builder.build()


def scraped(*applications: KafkaStreams) -> dict[tuple[str, frozenset[Any]], float]:
    """What Prometheus reads; each name is described once, and each series is there once."""
    registry = CollectorRegistry()
    registry.register(PrometheusCollector(*applications))
    text = generate_latest(registry).decode()
    described = Counter(line.split()[2] for line in text.splitlines() if line.startswith("# TYPE"))
    assert set(described.values()) == {1}, described
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    found = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}
    assert len(found) == len(samples)
    return found


def of_client(name: str, client: str) -> tuple[str, frozenset[Any]]:
    return f"kafka_streams_{name}", frozenset({("client_id", client)})


def test_whatever_sensors_and_clients_are_called_metrics_can_be_read(world: World) -> None:
    world.create("in")
    world.write("in", [("k", "v", 1)])
    with world.streams(sensing(), poll_ms=5, client_id='till "1"\udc80') as running:
        running.start()
        until(lambda: running.progress().records_in == 1)
        found = scraped(running)
    sensors = {dict(labels)["sensor"]: value for (name, labels), value in found.items() if name.endswith(SENSOR)}
    assert sensors == dict.fromkeys(
        ("a-b", "a_b", "größe in %", 'say "hi"\\\n', "process", "dropped-records-by-reason", "bad ?"), 2
    )
    assert of_client(ALIVE, 'till "1"?') in found


@pytest.fixture
def two(world: World) -> Any:
    """Two applications in one process."""
    world.create("in")
    both = [world.streams(sensing(), application_id=name, poll_ms=5) for name in ("one", "two")]
    with both[0], both[1]:
        for running in both:
            running.start()
        until(lambda: {running.state for running in both} == {State.RUNNING})
        yield both


def test_applications_in_one_process_are_told_apart(two: list[KafkaStreams]) -> None:
    found = scraped(*two)
    assert [found[of_client(ALIVE, name)] for name in ("one", "two")] == [1, 1]


def test_applications_share_a_meter(two: list[KafkaStreams]) -> None:
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader]).get_meter("kstreams")
    for each in two:
        observe(each, meter)
    data = reader.get_metrics_data()
    assert data is not None
    [alive] = [m for m in data.resource_metrics[0].scope_metrics[0].metrics if m.name.endswith(ALIVE)]
    assert sorted(str(dict(point.attributes or {})["client_id"]) for point in alive.data.data_points) == ["one", "two"]
