"""Traces of OpenTelemetry: records that carry one have a span in each operator, and what is written carries it on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased

import kstreams as ks
from kstreams.config import Config
from kstreams.testing import TopologyTestDriver
from tests.native.world import World, until

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED = [("traceparent", f"00-{TRACE}-{SPAN}-01".encode()), ("tracestate", b"vendor=7"), ("who", b"me")]
NOT_SAMPLED = [("traceparent", f"00-{TRACE}-{SPAN}-00".encode())]
TEXTS = {"key": str, "value": str}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What the provider of the program exports."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)  # a process has one global provider, for good
    yield exporter
    provider.shutdown()


def shouts() -> ks.Topology:
    builder = ks.StreamsBuilder()
    words = builder.stream("words", **TEXTS).filter(lambda _, word: bool(word), name="some")
    words.map_values(str.upper, value=str, name="shout").to("shouts", name="out")
    return builder.build()


def driver(topology: ks.Topology, **settings: Any) -> TopologyTestDriver:
    return TopologyTestDriver(topology, Config.of({"application.id": "app"}, **settings))


def written(topology: ks.Topology, headers: Any, **settings: Any) -> list[ks.Record[Any, Any]]:
    with driver(topology, **settings) as running:
        words = running.create_input_topic("words", **TEXTS)
        words.pipe_record(ks.Record(key="k", value="hello", timestamp=1, headers=headers))
        return list(running.create_output_topic("shouts", **TEXTS).read_records())


class Carried(NamedTuple):
    """What a header of a record says."""

    version: str
    trace: str
    span: str
    is_sampled: bool


def carried(record: ks.Record[Any, Any]) -> Carried:
    *ids, flags = (dict(record.headers)["traceparent"] or b"").decode().split("-")
    return Carried(*ids, bool(int(flags, 16) & 1))


def by_name(spans: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans.get_finished_spans()}


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


def test_each_operator_is_a_span_below_the_one_before(spans: InMemorySpanExporter) -> None:
    written(shouts(), SAMPLED, trace_records="sampled")
    found = by_name(spans)
    assert list(found) == ["send shouts", "shout", "some", "process words"]
    assert {f"{span.context.trace_id:032x}" for span in found.values() if span.context} == {TRACE}
    assert parent_of(found["process words"]) == int(SPAN, 16)
    for above, below in (("process words", "some"), ("some", "shout"), ("shout", "send shouts")):
        assert parent_of(found[below]) == id_of(found[above])


def test_spans_say_what_they_are_of(spans: InMemorySpanExporter) -> None:
    written(shouts(), SAMPLED, trace_records="sampled")
    read, sent = by_name(spans)["process words"], by_name(spans)["send shouts"]
    assert (read.kind, sent.kind) == (trace.SpanKind.CONSUMER, trace.SpanKind.PRODUCER)
    assert dict(read.attributes or {}) == {
        "messaging.consumer.group.name": "app",
        "messaging.operation.type": "process",
        "messaging.destination.name": "words",
        "messaging.kafka.offset": 0,
        "kstreams.task.id": "0_0",
        "kstreams.operator": "KSTREAM-SOURCE-0000000000",
    }


def test_what_is_written_carries_the_trace_on(spans: InMemorySpanExporter) -> None:
    [record] = written(shouts(), SAMPLED, trace_records="sampled")
    sent = id_of(by_name(spans)["send shouts"])
    assert dict(record.headers) == {
        "who": b"me",
        "traceparent": f"00-{TRACE}-{sent:016x}-01".encode(),
        "tracestate": b"vendor=7",
    }


@pytest.mark.parametrize(("records", "headers"), [("none", SAMPLED), ("sampled", NOT_SAMPLED), ("sampled", [])])
def test_other_records_go_as_they_came(spans: InMemorySpanExporter, records: str, headers: Any) -> None:
    [record] = written(shouts(), headers, trace_records=records)
    assert list(record.headers) == headers
    assert not spans.get_finished_spans()


def test_on_request_records_begin_traces(spans: InMemorySpanExporter) -> None:
    [record] = written(shouts(), [], trace_records="all")
    found = by_name(spans)
    assert parent_of(found["process words"]) is None
    assert len({span.context.trace_id for span in found.values() if span.context}) == 1
    assert carried(record)[2:] == (f"{id_of(found['send shouts']):016x}", True)


@pytest.mark.parametrize(
    "unreadable",
    [
        [("traceparent", b"00-zz-11-01")],
        [("traceparent", b"\xff\xfe")],
        [("traceparent", f"00-{'0' * 32}-{SPAN}-01".encode()), ("tracestate", b"vendor=7")],
        [("traceparent", f"ff-{TRACE}-{SPAN}-01".encode())],
        [("tracestate", b"vendor=7")],
    ],
)
def test_a_trace_that_cannot_be_read_is_none(spans: InMemorySpanExporter, unreadable: Any) -> None:
    [as_it_came] = written(shouts(), unreadable, trace_records="sampled")
    assert list(as_it_came.headers) == unreadable
    assert not spans.get_finished_spans()
    [begun] = written(shouts(), unreadable, trace_records="all")
    found = by_name(spans)
    assert parent_of(found["process words"]) is None
    assert carried(begun).span == f"{id_of(found['send shouts']):016x}"
    assert "tracestate" not in dict(begun.headers)


def test_on_request_traces_that_are_not_sampled_stay_so(spans: InMemorySpanExporter) -> None:
    [record] = written(shouts(), NOT_SAMPLED, trace_records="all")
    assert list(record.headers) == NOT_SAMPLED
    assert not spans.get_finished_spans()


async def shouted(word: str) -> str:
    return word.upper()


def batch_shouted(words: Any) -> list[str]:
    return [word.upper() for word in words["value"].to_pylist()]


AT_ONCE = ks.Suppressed.until_time_limit(0)
WINDOWS = ks.JoinWindows(before=5, after=5, grace=0)


@pytest.mark.parametrize(
    "build",
    [
        lambda words: words.map_values(shouted, value=str),
        lambda words: words.map_batch(batch_shouted, value=str),
        lambda words: words.to_table().suppress(AT_ONCE).to_stream(),
        lambda words: words.repartition(),
        lambda words: words.join(words.map_values(str, value=str), str.__add__, windows=WINDOWS, value=str),
    ],
    ids=["async", "batches", "suppress", "repartition", "join"],
)
def test_a_trace_passes_what_answers_later(spans: InMemorySpanExporter, build: Callable[[Any], Any]) -> None:
    [record] = written(counted(build), [*SAMPLED, ("baggage", b"user=1,\xff")], trace_records="sampled")
    assert {f"{span.context.trace_id:032x}" for span in spans.get_finished_spans() if span.context} == {TRACE}
    assert carried(record)[1:3] == (TRACE, f"{id_of(by_name(spans)['send shouts']):016x}")
    assert dict(record.headers)["tracestate"] == b"vendor=7"
    assert dict(record.headers)["baggage"] == b"user=1,\xff"


def test_the_sampler_of_the_program_decides_which(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider(sampler=TraceIdRatioBased(0))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    [record] = written(shouts(), [], trace_records="all")
    assert not exporter.get_finished_spans()
    assert not carried(record).is_sampled


def test_an_error_marks_the_spans_that_it_ends(spans: InMemorySpanExporter) -> None:
    def fail(word: str) -> str:
        raise ValueError("no")

    builder = ks.StreamsBuilder()
    builder.stream("words", **TEXTS).map_values(fail, value=str, name="fail").to("shouts")
    with pytest.raises(ks.errors.ProcessingError, match="fail"):
        written(builder.build(), SAMPLED, trace_records="sampled")
    assert by_name(spans)["fail"].status.status_code is trace.StatusCode.ERROR


def test_spans_of_a_users_function_lie_within_that_of_its_operator(spans: InMemorySpanExporter) -> None:
    def look_up(word: str) -> str:
        with trace.get_tracer("shop").start_as_current_span("looked up"):
            return word

    builder = ks.StreamsBuilder()
    builder.stream("words", **TEXTS).map_values(look_up, value=str, name="look").to("shouts")
    written(builder.build(), SAMPLED, trace_records="sampled")
    assert parent_of(by_name(spans)["looked up"]) == id_of(by_name(spans)["look"])


def counted(build: Callable[[Any], Any]) -> ks.Topology:
    builder = ks.StreamsBuilder()
    build(builder.stream("words", **TEXTS)).map_values(str, value=str).to("shouts", name="out", **TEXTS)
    return builder.build()


@pytest.mark.parametrize("cache", [0, 1_000_000])
def test_a_trace_goes_through_repartition_topics_and_caches(spans: InMemorySpanExporter, cache: int) -> None:
    flow = counted(lambda words: words.group_by(lambda _, word: word, key=str).count("counts").to_stream())
    [record] = written(flow, SAMPLED, trace_records="sampled", statestore_cache_max_bytes=cache)
    found = by_name(spans)
    read_again = found["process app-counts-repartition"]
    assert parent_of(read_again) == id_of(found["send counts-repartition"])
    assert dict(record.headers)["traceparent"] == f"00-{TRACE}-{id_of(found['send shouts']):016x}-01".encode()


def test_columns_leave_records_that_are_traced_to_the_record_path(spans: InMemorySpanExporter) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("words", **TEXTS).filter(ks.value != "x", name="some").to("shouts", **TEXTS)
    settings = {"trace_records": "sampled", "columns_min_rows": 0}
    [record] = written(builder.build(), SAMPLED, **settings)
    assert dict(record.headers)["traceparent"] != dict(SAMPLED)["traceparent"]
    assert "some" in by_name(spans)


def test_the_native_engine_carries_traces_from_topic_to_topic(world: World, spans: InMemorySpanExporter) -> None:
    world.create("words", 2)
    world.create("shouts")
    with world.log() as log, log.producer() as producer:
        producer.send("words", b"k", b"hello", headers=SAMPLED)
        producer.send("words", b"l", b"unseen")
    flow = counted(lambda words: words.group_by(lambda _, word: word, key=str).count("counts").to_stream())
    with world.streams(flow, trace_records="sampled", poll_ms=5) as running:
        running.start()
        until(lambda: "send shouts" in by_name(spans))
        until(lambda: running.progress().records_out["shouts"] == 2)
    assert {f"{span.context.trace_id:032x}" for span in spans.get_finished_spans() if span.context} == {TRACE}


def test_without_opentelemetry_an_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ks.errors.ConfigError, match=r"pip install 'kstreams-dsl\[metrics\]'"):
        driver(shouts(), trace_records="sampled")
