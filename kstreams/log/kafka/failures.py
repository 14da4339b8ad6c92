"""`error_of`: translates errors of Kafka's client to errors of kstreams, whose messages contain no secrets."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from kstreams.errors import FencedError, LogError, TopicExistsError, UnknownTopicError

PRODUCER_FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)
"""The codes for a producer whose transactional id a newer producer has taken."""

_ERROR_TYPES: dict[int, type[LogError]] = {
    **dict.fromkeys(PRODUCER_FENCED, FencedError),
    KafkaError.TOPIC_ALREADY_EXISTS: TopicExistsError,
    KafkaError.UNKNOWN_TOPIC_OR_PART: UnknownTopicError,
    KafkaError._UNKNOWN_TOPIC: UnknownTopicError,
    KafkaError._UNKNOWN_PARTITION: UnknownTopicError,
}


_TRANSIENT = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._WAIT_COORD,
    KafkaError._NOENT,
)


def is_transient(error: BaseException) -> bool:
    """Return True if a failed request may succeed a moment later."""
    reason = reason_of(error)
    return reason is not None and (reason.retriable() or reason.code() in _TRANSIENT)


def is_absent(error: BaseException) -> bool:
    """Return True if a broker does not know a topic or a leader, because it is unavailable, new or missing."""
    reason = reason_of(error)
    return reason is not None and reason.code() in (KafkaError._NOENT, KafkaError.UNKNOWN_TOPIC_OR_PART)


def is_fatal(error: BaseException) -> bool:
    """Return True if the client cannot be used any more. Its next transactional call raises the reason."""
    reason = reason_of(error)
    return reason is not None and reason.code() == KafkaError._FATAL


def reason_of(error: BaseException) -> KafkaError | None:
    """Return the KafkaError in an exception or its causes, or None. `flush` may wrap it in a SystemError."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KafkaException) and cause.args and isinstance(cause.args[0], KafkaError):
            return cause.args[0]
        cause = cause.__cause__ or cause.__context__
    return None


def log_error(failure: str, reason: KafkaError) -> LogError:
    """Return the error to raise for a KafkaError.

    Parameters
    ----------
    failure : str
        The beginning of the message: what has failed.
    reason : KafkaError
    """
    return _ERROR_TYPES.get(reason.code(), LogError)(f"{failure}: {reason.str()} ({reason.name()}).")


def error_of(failure: str, error: BaseException) -> LogError:
    """Return the error to raise for an exception of the client."""
    reason = reason_of(error)
    return LogError(f"{failure}: {error}") if reason is None else log_error(failure, reason)
