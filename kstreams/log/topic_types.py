"""What the records of a topic are: the types of keys and values, by name, in the settings of the topic.

Writers note them, those who look at the records read them. Bytes of the log do not depend on them.
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
"""In place of a type: the records were written as several ones."""

logger = logging.getLogger(__name__)


class TopicTypes(NamedTuple):
    """The types of keys and values by name; None where one is not known."""

    key: str | None = None
    value: str | None = None

    def settings(self) -> dict[str, str]:
        """The settings of a topic that say so.

        Examples
        --------
        >>> TopicTypes(None, "int").settings()
        {'kstreams.value.type': 'int'}
        """
        named = {KEY_TYPE: self.key, VALUE_TYPE: self.value}
        return {setting: name for setting, name in named.items() if name is not None}


def types_of(config: Mapping[str, str]) -> TopicTypes:
    """What the settings of a topic say of its records."""
    return TopicTypes(config.get(KEY_TYPE), config.get(VALUE_TYPE))


def create_typed(
    admin: Admin, name: str, partitions: int, config: Mapping[str, str] | None = None, types: TopicTypes | None = None
) -> bool:
    """Create a topic whose records are of these types; False when it is there already, just made by another."""
    try:
        admin.create_topic(name, partitions, {**(config or {}), **(types or TopicTypes()).settings()})
    except TopicExistsError:
        return False
    return True


def note_types(admin: Admin, name: str, types: TopicTypes) -> None:
    """Note that records of these types are written to a topic.

    A type that the topic has already stays. Another one than it has makes it `mixed`, with a warning; unless there are
    no records yet.
    """
    topic = admin.describe_topic(name)
    changed = {}
    for setting, wanted in types.settings().items():
        known = topic.config.get(setting)
        if known is None:
            changed[setting] = wanted
        elif known not in (wanted, MIXED):
            changed[setting] = _after_disagreement(admin, topic, setting, wanted)
    if changed:
        admin.alter_topic(name, changed)


def _after_disagreement(admin: Admin, topic: TopicDescription, setting: str, wanted: str) -> str:
    what = "keys" if setting == KEY_TYPE else "values"
    known = topic.config[setting]
    found = MIXED if holds_records(admin, topic) else wanted
    logger.warning(
        "the %s of %s were %s so far and are now written as %s; its settings say %s=%s from now on: readers that "
        "expect the other type will fail on them",
        what, topic.name, known, wanted, setting, found,
    )  # fmt: skip
    return found


def holds_records(admin: Admin, topic: TopicDescription) -> bool:
    """Whether there are records in a topic, visible or not."""
    members = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
    begin = admin.beginning_offsets(members)
    end = admin.end_offsets(members, committed_only=False)
    return any(end[member] > begin[member] for member in members)
