"""Under which subject of a registry the schema of keys or values of a topic is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from kstreams.errors import ConfigError

SubjectName: TypeAlias = Callable[[str, bool, str], str]
"""`(topic, is_key, full name of the record) -> subject`."""


def topic_name(topic: str, is_key: bool, record: str) -> str:
    """By topic, as Confluent's serializers do unless told otherwise.

    Examples
    --------
    >>> topic_name("orders", False, "shop.Order")
    'orders-value'
    """
    return f"{topic}-{'key' if is_key else 'value'}"


def record_name(topic: str, is_key: bool, record: str) -> str:
    """By record, so that all topics share its versions.

    Examples
    --------
    >>> record_name("orders", False, "shop.Order")
    'shop.Order'
    """
    return record


def topic_record_name(topic: str, is_key: bool, record: str) -> str:
    """By topic and record, so that a topic may hold several kinds of records.

    Examples
    --------
    >>> topic_record_name("orders", False, "shop.Order")
    'orders-shop.Order'
    """
    return f"{topic}-{record}"


STRATEGIES: Final[dict[str, SubjectName]] = {
    "topic": topic_name,
    "record": record_name,
    "topic-record": topic_record_name,
    "TopicNameStrategy": topic_name,
    "RecordNameStrategy": record_name,
    "TopicRecordNameStrategy": topic_record_name,
}
"""By their names here, and by the last part of the names of Confluent's classes."""


def subject_name(strategy: Any) -> SubjectName:
    """The strategy of a name, such as `topic-record` or the name of Confluent's class, or of a function of the user's.

    Raises
    ------
    ConfigError
        When there is none of this name.

    Examples
    --------
    >>> subject_name("io.confluent.kafka.serializers.subject.RecordNameStrategy")("orders", False, "shop.Order")
    'shop.Order'
    """
    if callable(strategy):
        own: SubjectName = strategy
        return own
    known = STRATEGIES.get(str(strategy).rpartition(".")[2])
    if known is None:
        names = ", ".join(name for name in STRATEGIES if name.islower())
        raise ConfigError(
            f"{strategy!r} names no strategy for subjects: write one of {names}, or a function (topic, is_key, record) "
            "that returns the subject"
        )
    return known
