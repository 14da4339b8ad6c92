"""Parked records: records whose calls failed for good, in a parking topic with their history in headers.

A parking topic is a journal. A mark in it says that a parked record was discarded or is to be processed again; the
second kind of mark has the key, value and headers of the record, and the operator that parked the record reads it.
"""

from __future__ import annotations

from collections.abc import Mapping

from kstreams.kernel.retry import Attempts
from kstreams.processor.api.error_handlers import OPERATOR, PARTITION, ErrorHandlerContext
from kstreams.record import Headers, ProducerRecord

_ERRORS = "__streams.errors."
_PARKED = "__streams.parked."

APPLICATION = f"{_ERRORS}application"
ATTEMPTS = f"{_ERRORS}attempts"
FIRST_TIME = f"{_ERRORS}first.time"
LAST_TIME = f"{_ERRORS}last.time"
RETRIED = f"{_PARKED}retried"
DISCARDED = f"{_PARKED}discarded"
TASK = f"{_PARKED}task"
"""The task of a sink that has parked a record."""


def parked_record(
    context: ErrorHandlerContext, topic: str, error: Exception, attempts: Attempts, application_id: str
) -> ProducerRecord:
    """Return the record for a parking topic: its own headers, then those of a dead letter, then its attempts.

    Parameters
    ----------
    context : ErrorHandlerContext
        The record with its place in the input; its raw key and value are those that the operator took.
    topic : str
        The parking topic.
    error : Exception
        The error of the last call.
    attempts : Attempts
    application_id : str
    """
    letter = context.dead_letter(topic, error)
    history = {
        APPLICATION: application_id,
        OPERATOR: context.processor_node_id,
        ATTEMPTS: str(attempts.calls),
        FIRST_TIME: str(attempts.first_ms),
        LAST_TIME: str(attempts.last_ms),
    }
    described = tuple((name, text.encode()) for name, text in history.items())
    return letter._replace(headers=(*own_headers(context.headers), *letter.headers, *described))


def own_headers(headers: Headers) -> Headers:
    """Return the headers without those of errors and of parking.

    Examples
    --------
    >>> own_headers((("trace", b"7"), ("__streams.errors.attempts", b"8")))
    (('trace', b'7'),)
    """
    return tuple(header for header in headers if not header[0].startswith((_ERRORS, _PARKED)))


def history(headers: Headers) -> dict[str, str]:
    """Return the headers of errors and of parking as texts, by name; absent values are missing."""
    named = ((name, value) for name, value in headers if name.startswith((_ERRORS, _PARKED)))
    return {name: value.decode(errors="replace") for name, value in named if value is not None}


def retry_mark(place: str, headers: Headers) -> Headers:
    """Return the headers of the mark that sends a parked record back to its operator.

    Parameters
    ----------
    place : str
        The partition and offset of the parked record, as `0@7`.
    headers : sequence of (str, bytes or None)
        The headers of the parked record.
    """
    addressee = ((name, value) for name, value in headers if name in (APPLICATION, OPERATOR))
    return (*own_headers(headers), *addressee, (RETRIED, place.encode()))


def discard_mark(place: str) -> Headers:
    """Return the headers of the mark that discards a parked record."""
    return ((DISCARDED, place.encode()),)


def task_partition(parked: Mapping[str, str]) -> int:
    """Return the partition of the task that parked a record."""
    return int(parked[PARTITION])
