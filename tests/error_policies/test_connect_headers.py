"""Dead letters of kstreams and of Kafka Connect are read as one, and ours may carry Connect's headers."""

from __future__ import annotations

from typing import Any

import kstreams as ks
from kstreams.record import Headers
from tests.error_policies.engines import LETTERS, row
from tests.error_policies.failing import MAPPER, numbers

CONNECT = "__connect.errors."
CONTINUE = {
    "deserialization_exception_handler": "continue",
    "processing_exception_handler": "continue",
    "errors_dead_letter_queue_topic_name": LETTERS,
}
OF_CONNECT: Headers = [
    ("mine", b"1"),
    (f"{CONNECT}topic", b"numbers"),
    (f"{CONNECT}partition", b"2"),
    (f"{CONNECT}offset", b"17"),
    (f"{CONNECT}connector.name", b"sink"),
    (f"{CONNECT}task.id", b"0"),
    (f"{CONNECT}stage", b"VALUE_CONVERTER"),
    (f"{CONNECT}class.name", b"org.apache.kafka.connect.json.JsonConverter"),
    (f"{CONNECT}exception.class.name", b"org.apache.kafka.connect.errors.DataException"),
    (f"{CONNECT}exception.message", b"Converting byte[] to Kafka Connect data failed"),
    (f"{CONNECT}exception.stacktrace", b"at ..."),
]


def connect_headers(letter: Any) -> dict[str, str]:
    return {name.removeprefix(CONNECT): text.decode() for name, text in letter.headers if name.startswith(CONNECT)}


def test_our_dead_letters_have_the_headers_of_connect_on_request(run: Any) -> None:
    rows = [row(b"1"), row(b"x")]
    assert connect_headers(run(numbers, rows, **CONTINUE).letters[0]) == {}
    (letter,) = run(numbers, rows, **CONTINUE, errors_dead_letter_queue_connect_headers=True).letters
    headers = connect_headers(letter)
    assert headers.pop("exception.stacktrace").startswith("Traceback")
    assert headers.pop("exception.message").startswith("invalid literal for int()")
    assert headers.pop("connector.name")
    assert headers == {
        "topic": "in",
        "partition": "0",
        "offset": "1",
        "task.id": "0_0",
        "stage": "TRANSFORMATION",
        "class.name": MAPPER,
        "exception.class.name": "ValueError",
    }


def test_a_record_that_does_not_decode_failed_in_the_converter(run: Any) -> None:
    (letter,) = run(numbers, [row(b"\xff")], **CONTINUE, errors_dead_letter_queue_connect_headers=True).letters
    assert connect_headers(letter)["stage"] == "VALUE_CONVERTER"


def test_our_dead_letters_are_read(run: Any) -> None:
    (letter,) = run(numbers, [row(b"1"), row(b"x")], **CONTINUE).letters
    failure = ks.DeadLetter.of(letter.headers)
    assert failure is not None
    assert (failure.topic, failure.partition, failure.offset, failure.exception) == ("in", 0, 1, "ValueError")
    assert failure.message.startswith("invalid literal for int()")
    assert str(failure).startswith("in-0@1 ValueError: invalid literal for int()")


def test_dead_letters_of_connect_are_read() -> None:
    assert ks.DeadLetter.of(OF_CONNECT) == ks.DeadLetter(
        topic="numbers",
        partition=2,
        offset=17,
        place="sink 0 VALUE_CONVERTER",
        exception="org.apache.kafka.connect.errors.DataException",
        message="Converting byte[] to Kafka Connect data failed",
        stacktrace="at ...",
    )
    assert ks.DeadLetter.of([("mine", b"1")]) is None
