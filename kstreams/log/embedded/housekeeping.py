"""Housekeeping of a topic: roll what is due, compact, apply retention, forget settled transactions."""

from __future__ import annotations

from contextlib import closing, suppress

from kstreams.log.embedded.appender import Appender
from kstreams.log.embedded.catalogue import Topic
from kstreams.log.embedded.compaction import compact
from kstreams.log.embedded.home import Home
from kstreams.log.embedded.partition import Partition
from kstreams.log.embedded.retention import apply_retention
from kstreams.log.embedded.stable_end import stable_end
from kstreams.log.embedded.topic_config import TopicSettings
from kstreams.log.embedded.transactions import fate, forget_committed


def clean_topic(home: Home, topic: Topic, *, eager: bool) -> None:
    """Clean every partition of a topic.

    Parameters
    ----------
    eager : bool
        Compact whatever can be; else only where it is worth it, as Kafka's cleaner does.
    """
    settings = TopicSettings.of(topic.config)
    for number in range(topic.partitions):
        clean_partition(home, topic, number, settings, eager=eager)
    forget_committed(home.catalogue)


def clean_partition(home: Home, topic: Topic, number: int, settings: TopicSettings, *, eager: bool) -> None:
    """Clean one partition; where another process cleans it at the same time, that one goes on."""
    partition = home.partition(topic, number)
    appender = Appender(partition, settings.limits, home.clock, home.durability, on_roll=lambda: None)
    with closing(appender), suppress(FileNotFoundError):
        appender.roll()
        if settings.delete:
            apply_retention(partition, settings, home.clock.now_ms())
        if settings.compact:
            _compact(home, topic, partition, settings, eager)


def _compact(home: Home, topic: Topic, partition: Partition, settings: TopicSettings, eager: bool) -> None:
    now_ms = home.clock.now_ms()
    stable = stable_end(home, topic, partition.source.partition, partition.head().end_offset)
    compact(partition, settings, stable, lambda number: fate(home.catalogue, number, now_ms), now_ms, eager=eager)
