"""Each exception handler with each of its answers, on the test driver and on the native runtime."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import kstreams as ks
from kstreams import ErrorHandlerContext, ProducerRecord, PunctuationType, Response
from kstreams.errors import ConfigError, ProcessingError, SerdeError
from tests.error_policies.engines import Seen, row
from tests.error_policies.failing import MAPPER, MISTYPED, mistyped, numbers

SOURCE = "KSTREAM-SOURCE-0000000000"


class StoreQueryArguments:
    """A handler of the user's that remembers what it was asked."""

    def __init__(self, response: Response) -> None:
        self.response = response
        self.calls: list[tuple[ErrorHandlerContext, Any, Exception]] = []

    def __call__(self, context: ErrorHandlerContext, record: Any, error: Exception) -> Response:
        self.calls.append((context, record, error))
        return self.response


class TestDeserialization:
    ROWS = (row(b"good"), row(b"\xff", timestamp=7), row(b"fine"))

    def topology(self) -> ks.Topology:
        builder = ks.StreamsBuilder()
        builder.stream("in", key=str, value=str).to("out")
        return builder.build()

    def test_fail_ends_the_run_with_the_place_of_the_record(self, run: Any) -> None:
        seen = run(self.topology, self.ROWS, deserialization_exception_handler="fail")
        assert isinstance(seen.error, SerdeError)
        assert "in-0@1" in str(seen.error)

    def test_continue_leaves_the_record_out(self, run: Any) -> None:
        seen = run(self.topology, self.ROWS, deserialization_exception_handler="continue")
        assert seen.error is None
        assert seen.values() == [b"good", b"fine"]
        assert seen.dropped == {(SOURCE, "failed with SerdeError"): 1}

    def test_a_function_is_told_everything_and_may_resume(self, run: Any) -> None:
        handler = StoreQueryArguments(Response.resume())
        seen = run(self.topology, self.ROWS, deserialization_exception_handler=handler)
        assert seen.values() == [b"good", b"fine"]
        ((context, record, error),) = handler.calls
        assert (context.topic, context.partition, context.offset, context.timestamp) == ("in", 0, 1, 7)
        assert (context.processor_node_id, context.task_id) == (SOURCE, "0_0")
        assert (context.source_raw_key, context.source_raw_value) == (b"k", b"\xff")
        assert (record.key, record.value, record.timestamp) == (b"k", b"\xff", 7)
        assert isinstance(error, SerdeError)

    def test_a_function_may_fail(self, run: Any) -> None:
        seen = run(self.topology, self.ROWS, deserialization_exception_handler=StoreQueryArguments(Response.fail()))
        assert isinstance(seen.error, SerdeError)

    def test_retry_is_fail_where_nothing_can_be_tried_again(self, run: Any) -> None:
        seen = run(self.topology, self.ROWS, deserialization_exception_handler=StoreQueryArguments(Response.retry()))
        assert isinstance(seen.error, SerdeError)

    def test_a_key_that_does_not_decode_is_the_same(self, run: Any) -> None:
        rows = [row(b"a"), row(b"b", key=b"\xff"), row(b"c")]
        seen = run(self.topology, rows, deserialization_exception_handler="continue")
        assert seen.values() == [b"a", b"c"]

    def test_all_of_many_may_be_bad(self, run: Any) -> None:
        rows = [row(b"\xff")] * 20
        seen = run(self.topology, rows, deserialization_exception_handler="continue")
        assert seen.values() == []
        assert sum(seen.dropped.values()) == 20

    def test_what_is_left_out_moves_no_time(self, run: Any) -> None:
        def windows() -> ks.Topology:
            builder = ks.StreamsBuilder()
            counts = (
                builder.stream("in", key=str, value=str).group_by_key().windowed_by(ks.TimeWindows(size=10)).count()
            )
            counts.to_stream(lambda window, _: window.key, key=str).to("out", value=int)
            return builder.build()

        rows = [row(b"a", timestamp=1), row(b"\xff", timestamp=1000), row(b"b", timestamp=2)]
        seen = run(windows, rows, deserialization_exception_handler="continue")
        assert [int.from_bytes(value) for value in seen.values()] == [1, 2]


class TestProcessing:
    ROWS = (row(b"1"), row(b"x", timestamp=3), row(b"2"))

    def written(self, seen: Seen) -> list[int]:
        return [int.from_bytes(value) for value in seen.values() if value is not None]

    def test_fail_names_operator_line_and_record(self, run: Any) -> None:
        seen = run(numbers, self.ROWS, processing_exception_handler="fail")
        assert isinstance(seen.error, ProcessingError)
        assert (seen.error.operator, seen.error.record) == (MAPPER, "in-0@1")

    def test_continue_leaves_the_record_out(self, run: Any) -> None:
        seen = run(numbers, self.ROWS, processing_exception_handler="continue")
        assert seen.error is None
        assert self.written(seen) == [1, 2]
        assert seen.dropped == {(MAPPER, "failed with ValueError"): 1}

    def test_a_function_is_told_everything_and_may_resume(self, run: Any) -> None:
        handler = StoreQueryArguments(Response.resume())
        seen = run(numbers, self.ROWS, processing_exception_handler=handler)
        assert self.written(seen) == [1, 2]
        ((context, record, error),) = handler.calls
        assert (context.topic, context.partition, context.offset, context.timestamp) == ("in", 0, 1, 3)
        assert (context.processor_node_id, context.task_id) == (MAPPER, "0_0")
        assert (context.source_raw_key, context.source_raw_value) == (b"k", b"x")
        assert (record.key, record.value, record.timestamp) == ("k", "x", 3)
        assert isinstance(error, ValueError)

    @pytest.mark.parametrize("response", [Response.fail(), Response.retry()])
    def test_a_function_may_fail(self, run: Any, response: Response) -> None:
        seen = run(numbers, self.ROWS, processing_exception_handler=StoreQueryArguments(response))
        assert isinstance(seen.error, ProcessingError)
        assert isinstance(seen.error.cause, ValueError)

    def test_an_error_of_the_handler_ends_the_run(self, run: Any) -> None:
        def broken(context: ErrorHandlerContext, record: Any, error: Exception) -> Response:
            raise OSError("no connection")

        seen = run(numbers, self.ROWS, processing_exception_handler=broken)
        assert isinstance(seen.error, ProcessingError)
        assert isinstance(seen.error.cause, OSError)

    def test_a_handler_that_does_not_answer_is_told_how(self, run: Any) -> None:
        seen = run(numbers, self.ROWS, processing_exception_handler=lambda context, record, error: None)
        assert isinstance(seen.error, ProcessingError)
        assert isinstance(seen.error.cause, ConfigError)
        assert "Response.resume()" in str(seen.error)

    def test_only_the_subtree_of_the_failing_operator_is_abandoned(self, run: Any) -> None:
        told: list[str] = []

        def tree() -> ks.Topology:
            told.clear()
            builder = ks.StreamsBuilder()
            stream = builder.stream("in", key=str, value=str).peek(lambda k, v: told.append(f"before {v}"))
            left = stream.map_values(int, value=int)
            left.foreach(lambda k, v: told.append(f"below {v}"))
            stream.foreach(lambda k, v: told.append(f"sibling {v}"))
            return builder.build()

        run(tree, self.ROWS[:2], processing_exception_handler="continue")
        assert told == ["before 1", "below 1", "sibling 1", "before x", "sibling x"]

    def test_what_an_operator_forwarded_before_it_failed_stays(self, run: Any) -> None:
        def halves(value: str) -> Any:
            yield value
            raise ValueError(value)

        def flat() -> ks.Topology:
            builder = ks.StreamsBuilder()
            builder.stream("in", key=str, value=str).flat_map_values(halves, value=str).to("out")
            return builder.build()

        seen = run(flat, self.ROWS, processing_exception_handler="continue")
        assert seen.values() == [b"1", b"x", b"2"]
        assert sum(seen.dropped.values()) == 3

    def test_an_aggregator_that_fails_changes_nothing(self, run: Any) -> None:
        def total() -> ks.Topology:
            builder = ks.StreamsBuilder()
            grouped = builder.stream("in", key=str, value=str).group_by_key()
            sums = grouped.aggregate(lambda: 0, lambda key, value, sum_: sum_ + int(value), value=int)
            sums.to_stream().to("out")
            return builder.build()

        seen = run(total, self.ROWS, processing_exception_handler="continue")
        assert self.written(seen) == [1, 3]

    @pytest.mark.parametrize("windows", [None, ks.TimeWindows(size=10), ks.SessionWindows(gap=10)], ids=str)
    def test_an_aggregate_that_its_store_cannot_hold_belongs_to_its_record(self, run: Any, windows: Any) -> None:
        def total() -> ks.Topology:
            builder = ks.StreamsBuilder()
            grouped = builder.stream("in", key=str, value=str).group_by_key()
            table = grouped if windows is None else grouped.windowed_by(windows)
            merger = {"merger": lambda key, a, b: a + b} if isinstance(windows, ks.SessionWindows) else {}
            sums = table.aggregate(lambda: 0, lambda k, v, sum_: v if v == "x" else sum_ + int(v), value=int, **merger)
            sums.to_stream(lambda key, _: "k", key=str).filter(lambda key, value: value is not None).to("out")
            return builder.build()

        seen = run(total, self.ROWS, processing_exception_handler="continue")
        assert seen.error is None
        assert [reason for _, reason in seen.dropped] == ["failed with SerdeError"]
        assert self.written(seen)[0] == 1

    def test_a_joiner_and_a_table_function_are_asked_about_too(self, run: Any) -> None:
        def doubled() -> ks.Topology:
            builder = ks.StreamsBuilder()
            table = builder.table("in", key=str, value=str).map_values(int, value=int, materialized="numbers")
            table.to_stream().to("out")
            return builder.build()

        seen = run(doubled, self.ROWS, processing_exception_handler="continue")
        assert self.written(seen) == [1, 2]

    def test_a_processor_and_its_punctuator(self, run: Any) -> None:
        handler = StoreQueryArguments(Response.resume())

        class Fragile(ks.Processor[str, str, str, str]):
            def init(self, context: Any) -> None:
                self.context = context
                context.schedule(timedelta(milliseconds=10), PunctuationType.STREAM_TIME, self.tick)

            def tick(self, time_ms: int) -> None:
                raise RuntimeError(f"tick {time_ms}")

            def process(self, record: Any) -> None:
                int(record.value)
                self.context.forward(record)

        def processed() -> ks.Topology:
            builder = ks.StreamsBuilder()
            builder.stream("in", key=str, value=str).process(Fragile, name="fragile").to("out", key=str, value=str)
            return builder.build()

        rows = [row(b"1", timestamp=5), row(b"x", timestamp=6), row(b"2", timestamp=25)]
        seen = run(processed, rows, processing_exception_handler=handler)
        assert seen.values() == [b"1", b"2"]
        told = [(context.topic, context.timestamp, record and record.value, str(error)[:6])
                for context, record, error in handler.calls]  # fmt: skip
        assert told == [(None, 5, None, "tick 5"), ("in", 6, "x", "invali"), (None, 25, None, "tick 2")]
        assert {context.processor_node_id for context, _, _ in handler.calls} == {"fragile"}

    def test_a_failing_choice_of_topic_belongs_to_the_operator_before_the_sink(self, run: Any) -> None:
        handler = StoreQueryArguments(Response.resume())

        def chosen() -> ks.Topology:
            builder = ks.StreamsBuilder()
            stream = builder.stream("in", key=str, value=str).filter(lambda k, v: True)
            stream.to(lambda key, value, record: ["out"][int(value)])
            return builder.build()

        run(chosen, [row(b"x")], processing_exception_handler=handler)
        assert [context.processor_node_id for context, _, _ in handler.calls] == ["KSTREAM-FILTER-0000000001"]


class TestProduction:
    def test_fail_names_sink_topic_and_record(self, run: Any) -> None:
        seen = run(mistyped, MISTYPED, production_exception_handler="fail")
        assert isinstance(seen.error, SerdeError)
        assert "topic out" in str(seen.error)

    def test_continue_leaves_the_record_out(self, run: Any) -> None:
        seen = run(mistyped, MISTYPED, production_exception_handler="continue")
        assert seen.values() == [b"ab", b"abc"]
        assert seen.dropped == {("KSTREAM-SINK-0000000002", "failed with SerdeError"): 1}

    def test_later_records_keep_their_headers(self, run: Any) -> None:
        rows = [record._replace(headers=(("h", record.value),)) for record in MISTYPED]
        seen = run(mistyped, rows, production_exception_handler="continue")
        assert [found.headers for found in seen.rows["out"]] == [(("h", b"ab"),), (("h", b"abc"),)]

    def test_retry_is_fail_for_what_can_never_be_written(self, run: Any) -> None:
        seen = run(mistyped, MISTYPED, production_exception_handler="retry")
        assert isinstance(seen.error, SerdeError)

    def test_a_function_is_told_the_origin_and_the_input_record(self, run: Any) -> None:
        handler = StoreQueryArguments(Response.resume())
        seen = run(mistyped, MISTYPED, production_exception_handler=handler)
        assert seen.values() == [b"ab", b"abc"]
        ((context, record, error),) = handler.calls
        assert (context.origin, context.topic, context.offset, context.source_raw_value) == ("value", "in", 1, b"x")
        assert record == ProducerRecord("out", "k", 1, 3, ())
        assert isinstance(error, SerdeError)

    def test_a_key_has_another_origin(self, run: Any) -> None:
        def keyed() -> ks.Topology:
            builder = ks.StreamsBuilder()
            builder.stream("in", key=str, value=str).select_key(lambda k, v: len(v), key=str).to("out")
            return builder.build()

        handler = StoreQueryArguments(Response.resume())
        run(keyed, MISTYPED[:1], production_exception_handler=handler)
        assert [context.origin for context, _, _ in handler.calls] == ["key"]

    def test_a_function_may_fail(self, run: Any) -> None:
        seen = run(mistyped, MISTYPED, production_exception_handler=StoreQueryArguments(Response.fail()))
        assert isinstance(seen.error, SerdeError)

    def test_a_repartition_topic_is_a_topic_too(self, run: Any) -> None:
        def counted() -> ks.Topology:
            builder = ks.StreamsBuilder()
            stream = builder.stream("in", key=str, value=str)
            bad = stream.select_key(lambda k, v: 1 if v == "x" else v, key=str)
            bad.group_by_key().count().to_stream().to("out", value=int)
            return builder.build()

        seen = run(counted, MISTYPED, production_exception_handler="continue")
        assert sorted(row.key or b"" for row in seen.rows["out"]) == [b"ab", b"abc"]
