"""What Kafka's client reports as the errors of kstreams: a sentence, without secrets."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException

from kstreams.errors import FencedError, LogError, TopicExistsError, UnknownTopicError

PRODUCER_FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)
"""What is said of a producer whose transactional id has a newer one."""

_KINDS: dict[int, type[LogError]] = {
    **dict.fromkeys(PRODUCER_FENCED, FencedError),
    KafkaError.TOPIC_ALREADY_EXISTS: TopicExistsError,
    KafkaError.UNKNOWN_TOPIC_OR_PART: UnknownTopicError,
    KafkaError._UNKNOWN_TOPIC: UnknownTopicError,
    KafkaError._UNKNOWN_PARTITION: UnknownTopicError,
}


_PASSING = (
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


def passes(error: BaseException) -> bool:
    """Whether what failed may succeed a moment later."""
    reason = reason_of(error)
    return reason is not None and (reason.retriable() or reason.code() in _PASSING)


def is_absent(error: BaseException) -> bool:
    """Whether a broker does not know a topic, or nobody who leads a partition: it is away, new, or not there."""
    reason = reason_of(error)
    return reason is not None and reason.code() in (KafkaError._NOENT, KafkaError.UNKNOWN_TOPIC_OR_PART)


def has_failed_for_good(error: BaseException) -> bool:
    """Whether the client can do nothing more; it says why at the next call about its transaction."""
    reason = reason_of(error)
    return reason is not None and reason.code() == KafkaError._FATAL


def reason_of(error: BaseException) -> Any:
    """The KafkaError in an exception; None when there is none. `flush` may wrap it in a SystemError."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, KafkaException) and seen.args and isinstance(seen.args[0], KafkaError):
            return seen.args[0]
        seen = seen.__cause__ or seen.__context__
    return None


def log_error(what: str, reason: Any) -> LogError:
    """The error to raise for a KafkaError.

    Parameters
    ----------
    what : str
        What was tried, as the beginning of a sentence.
    reason : KafkaError
    """
    return _KINDS.get(reason.code(), LogError)(f"{what}: {reason.str()} ({reason.name()}).")


def raised(what: str, error: BaseException) -> LogError:
    """The error to raise for what a call of the client has raised."""
    reason = reason_of(error)
    return LogError(f"{what}: {error}") if reason is None else log_error(what, reason)
