"""The types of a topic's keys and values, by name, in the settings of the topic.

Writers store the types, and tools that show records read them. The bytes of records do not depend on them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

from kstreams.errors import TopicExistsError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Admin, TopicDescription

KEY_TYPE = "kstreams.key.type"
VALUE_TYPE = "kstreams.value.type"
MIXED = "mixed"
"""Marker for a topic whose records were written with more than one type."""

logger = logging.getLogger(__name__)


class TopicTypes(NamedTuple):
    """The types of keys and values by name. None for an unknown type."""

    key: str | None = None
    value: str | None = None

    def settings(self) -> dict[str, str]:
        """Return the topic settings for these types.

        Examples
        --------
        >>> TopicTypes(None, "int").settings()
        {'kstreams.value.type': 'int'}
        """
        settings = {KEY_TYPE: self.key, VALUE_TYPE: self.value}
        return {setting: name for setting, name in settings.items() if name is not None}


def types_of(config: Mapping[str, str]) -> TopicTypes:
    """Return the types in the settings of a topic."""
    return TopicTypes(config.get(KEY_TYPE), config.get(VALUE_TYPE))


def create_typed(
    admin: Admin, name: str, partitions: int, config: Mapping[str, str] | None = None, types: TopicTypes | None = None
) -> bool:
    """Create a topic with these types. Return False if it exists already."""
    try:
        admin.create_topic(name, partitions, {**(config or {}), **(types or TopicTypes()).settings()})
    except TopicExistsError:
        return False
    return True


def store_types(admin: Admin, name: str, types: TopicTypes) -> None:
    """Store the types of a topic.

    If the topic has another type and has records, the type becomes `mixed`. A warning is logged.
    """
    topic = admin.describe_topic(name)
    changed = {}
    for setting, type_name in types.settings().items():
        stored = topic.config.get(setting)
        if stored is None:
            changed[setting] = type_name
        elif stored not in (type_name, MIXED):
            changed[setting] = _changed_type(admin, topic, setting, type_name)
    if changed:
        admin.alter_topic(name, changed)


def _changed_type(admin: Admin, topic: TopicDescription, setting: str, type_name: str) -> str:
    """Return the type to store for a topic with another type, and log a warning."""
    side = "keys" if setting == KEY_TYPE else "values"
    stored = topic.config[setting]
    new_type = MIXED if holds_records(admin, topic) else type_name
    logger.warning(
        "the %s of %s were %s so far and are now written as %s; its settings say %s=%s from now on: readers that "
        "expect the other type will fail on them",
        side, topic.name, stored, type_name, setting, new_type,
    )  # fmt: skip
    return new_type


def holds_records(admin: Admin, topic: TopicDescription) -> bool:
    """Return True if a topic has records, visible or not."""
    sources = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
    begin = admin.beginning_offsets(sources)
    end = admin.end_offsets(sources, committed_only=False)
    return any(end[source] > begin[source] for source in sources)
