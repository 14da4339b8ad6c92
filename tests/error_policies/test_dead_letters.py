"""What goes to the topic of dead letters: records that failed and, on request, those that were dropped."""

from __future__ import annotations

from typing import Any

import pytest

import kstreams as ks
from kstreams import ErrorHandlerContext, ProducerRecord, Response
from kstreams.errors import ConfigError, ProcessingError
from tests.error_policies.engines import LETTERS, row
from tests.error_policies.failing import MAPPER, MISTYPED, mistyped, numbers


def headers_of(letter: Any) -> dict[str, Any]:
    return {name.removeprefix("__streams.errors."): value for name, value in letter.headers}


class TestDeadLetters:
    def test_the_input_record_goes_there_as_it_was_read_with_what_happened(self, run: Any) -> None:
        rows = [row(b"1"), row(b"x", key=b"raw", timestamp=3)]
        seen = run(
            numbers,
            rows,
            processing_exception_handler="continue",
            errors_dead_letter_queue_topic_name=LETTERS,
        )
        (letter,) = seen.letters
        assert (letter.key, letter.value, letter.timestamp) == (b"raw", b"x", 3)
        headers = headers_of(letter)
        assert list(headers) == ["exception", "message", "stacktrace", "topic", "partition", "offset"]
        assert headers["exception"] == b"ValueError: " + headers["message"]
        assert b"invalid literal for int()" in headers["message"]
        assert headers["stacktrace"].startswith(b"Traceback")
        assert (headers["topic"], headers["partition"], headers["offset"]) == (b"in", b"0", b"1")

    def test_what_does_not_decode_goes_there(self, run: Any) -> None:
        settings = {"deserialization_exception_handler": "continue", "errors_dead_letter_queue_topic_name": LETTERS}
        seen = run(numbers, [row(b"1"), row(b"\xff"), row(b"\xfe")], **settings)
        assert [letter.value for letter in seen.letters] == [b"\xff", b"\xfe"]
        assert headers_of(seen.letters[0])["exception"].startswith(b"SerdeError: ")

    def test_what_does_not_encode_goes_there(self, run: Any) -> None:
        settings = {"production_exception_handler": "continue", "errors_dead_letter_queue_topic_name": LETTERS}
        seen = run(mistyped, MISTYPED, **settings)
        assert [letter.value for letter in seen.letters] == [b"x"]
        assert headers_of(seen.letters[0])["offset"] == b"1"

    def test_the_record_that_ends_the_run_goes_there_first(self, run: Any) -> None:
        seen = run(numbers, [row(b"1"), row(b"x")], errors_dead_letter_queue_topic_name=LETTERS)
        assert isinstance(seen.error, ProcessingError)
        assert [letter.value for letter in seen.letters] == [b"x"]

    def test_a_handler_of_the_users_writes_its_own(self, run: Any) -> None:
        def handler(context: ErrorHandlerContext, record: Any, error: Exception) -> Response:
            own = ProducerRecord(LETTERS, b"own", repr(record.value).encode(), 9)
            return Response.resume([own, context.dead_letter(LETTERS, error)])

        seen = run(numbers, [row(b"x", timestamp=4)], processing_exception_handler=handler)
        assert [(letter.key, letter.value, letter.timestamp) for letter in seen.letters] == [
            (b"own", b"'x'", 9),
            (b"k", b"x", 4),
        ]

    def test_without_a_topic_there_are_none(self, run: Any) -> None:
        seen = run(numbers, [row(b"x")], processing_exception_handler="continue")
        assert not seen.letters


class TestDroppedRecords:
    SETTINGS = {"errors_dead_letter_queue_topic_name": LETTERS, "errors_dead_letter_queue_dropped_records": True}

    def counts(self) -> ks.Topology:
        builder = ks.StreamsBuilder()
        windows = ks.TimeWindows(size=10, advance=5, grace=0)
        counts = builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows).count()
        counts.to_stream(lambda window, _: window.key, key=str).to("out", value=int)
        return builder.build()

    def test_late_records_and_those_without_a_key_go_there_once_with_reason_and_operator(self, run: Any) -> None:
        rows = [row(b"a", timestamp=100), row(b"late", timestamp=1), row(b"unkeyed", key=None, timestamp=101)]
        seen = run(self.counts, rows, **self.SETTINGS)
        assert [letter.value for letter in seen.letters] == [b"late", b"unkeyed"]
        told = [(headers_of(letter)["reason"], headers_of(letter)["offset"]) for letter in seen.letters]
        assert told == [(b"late: its window is closed", b"1"), (b"null key", b"2")]
        assert headers_of(seen.letters[0])["operator"].startswith(b"KSTREAM-AGGREGATE")

    def test_negative_times_and_tables_without_a_key(self, run: Any) -> None:
        def table() -> ks.Topology:
            builder = ks.StreamsBuilder()
            early = lambda record, _: -1 if record.value == "early" else record.timestamp  # noqa: E731
            builder.table("in", key=str, value=str, timestamp_extractor=early).to_stream().to("out")
            return builder.build()

        seen = run(table, [row(b"early"), row(b"a"), row(b"unkeyed", key=None)], **self.SETTINGS)
        told = [(letter.value, headers_of(letter)["reason"]) for letter in seen.letters]
        assert told == [(b"early", b"negative timestamp"), (b"unkeyed", b"null key")]

    def test_a_null_key_before_a_repartition(self, run: Any) -> None:
        def repartitioned() -> ks.Topology:
            builder = ks.StreamsBuilder()
            stream = builder.stream("in", key=str, value=str).select_key(lambda k, v: None if v == "x" else v, key=str)
            stream.repartition().to("out")
            return builder.build()

        seen = run(repartitioned, [row(b"a"), row(b"x")], **self.SETTINGS)
        assert [letter.value for letter in seen.letters] == [b"x"]
        assert list(seen.dropped.values()) == [1]

    def test_a_record_that_failed_has_one_letter_with_both(self, run: Any) -> None:
        seen = run(numbers, [row(b"x")], processing_exception_handler="continue", **self.SETTINGS)
        (letter,) = seen.letters
        headers = headers_of(letter)
        assert headers["exception"].startswith(b"ValueError")
        assert (headers["operator"], headers["reason"]) == (MAPPER.encode(), b"failed with ValueError")

    def test_it_needs_a_topic(self, run: Any) -> None:
        with pytest.raises(ConfigError, match=r"errors\.dead\.letter\.queue\.topic\.name"):
            raise run(self.counts, [], errors_dead_letter_queue_dropped_records=True).error
