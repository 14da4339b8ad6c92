"""Housekeeping of a topic: roll what is due, compact, apply retention, forget settled transactions."""

from __future__ import annotations

from kstreams.log.embedded.appender import Appender
from kstreams.log.embedded.catalogue import Topic
from kstreams.log.embedded.home import Home
from kstreams.log.embedded.retention import apply_retention
from kstreams.log.embedded.topic_config import TopicSettings
from kstreams.log.embedded.transactions import forget_committed


def clean_topic(home: Home, topic: Topic, *, eager: bool) -> None:
    """Clean every partition of a topic.

    Parameters
    ----------
    eager : bool
        Compact whatever can be; else only where it is worth it, as Kafka's cleaner does.
    """
    settings = TopicSettings.of(topic.config)
    for number in range(topic.partitions):
        _clean_partition(home, topic, number, settings, eager)
    forget_committed(home.catalogue)


def _clean_partition(home: Home, topic: Topic, number: int, settings: TopicSettings, eager: bool) -> None:
    partition = home.partition(topic, number)
    appender = Appender(partition, settings.limits, home.clock, home.durability, on_roll=lambda: None)
    try:
        appender.roll()
        if settings.delete:
            apply_retention(partition, settings, home.clock.now_ms())
    finally:
        appender.close()
