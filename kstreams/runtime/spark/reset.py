"""Reset of an application on Spark: checkpoint, consumer groups, and topics of DataFrames and connectors."""

from __future__ import annotations

import re
from typing import NamedTuple

from kstreams.config import Config
from kstreams.log.api import Admin, Log
from kstreams.runtime.connectors import ApplicationConnectors
from kstreams.runtime.deletions import Deletion
from kstreams.runtime.spark.checkpoint import CHECKPOINT_ID
from kstreams.runtime.spark.io.staged.publication import PUBLISHED
from kstreams.runtime.spark.program import feed_group_of, group_of
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage
from kstreams.runtime.spark.storage.opening import open_storage


class Remains(NamedTuple):
    """The topics and the consumer groups of an application."""

    topics: list[str]
    groups: list[str]


def planned_deletions(config: Config, log: Log, connectors: ApplicationConnectors | None = None) -> list[Deletion]:
    """Return what a reset would delete: checkpoint, consumer groups, and topics of DataFrames and connectors.

    Parameters
    ----------
    config : Config
    log : Log
    connectors : ApplicationConnectors or None
        None to keep the positions of connectors.
    """
    storage = _storage(config)
    checkpoint = [Deletion("checkpoint", storage.location)] if storage.names("") else []
    with log.admin() as admin:
        remains = _remains(config, admin, connectors)
    offsets = [Deletion("offsets", group) for group in remains.groups]
    return checkpoint + offsets + [Deletion("topic", topic) for topic in remains.topics]


def delete_application(config: Config, log: Log, connectors: ApplicationConnectors | None = None) -> list[Deletion]:
    """Delete what `planned_deletions` returns, and return it.

    The id of the checkpoint is deleted first. If the reset is then interrupted, the next run has another id than the
    committed steps and is refused.
    """
    deletions = planned_deletions(config, log, connectors)
    storage = _storage(config)
    storage.delete([CHECKPOINT_ID])
    storage.clear()
    with log.admin() as admin:
        remains = _remains(config, admin, connectors)
        for topic in remains.topics:
            admin.delete_topic(topic)
        for group in remains.groups:
            admin.delete_group(group)
    return deletions


def _storage(config: Config) -> CheckpointStorage:
    settings = SparkSettings.of(config)
    return open_storage(settings.checkpoint_of(config.application_id), settings.conf)


def _remains(config: Config, admin: Admin, connectors: ApplicationConnectors | None) -> Remains:
    topics = _fed_topics(config, admin)
    groups = _groups(config, admin)
    if connectors is not None:
        topics += sorted(admin.topics().keys() & set(connectors.internal_topics()))
        groups += sorted({*admin.groups()}.intersection(connectors.groups()).difference(groups))
    return Remains(topics, groups)


def _groups(config: Config, admin: Admin) -> list[str]:
    """Return the groups of the tasks, of each windowed query and of each feed, and the groups of their publishers."""
    base = re.escape(group_of(config.application_id))
    return [
        group for group in admin.groups() if re.fullmatch(rf"{base}(-\d+(-\d+)?|-feed-.+-feed)?({PUBLISHED})?", group)
    ]


def _fed_topics(config: Config, admin: Admin) -> list[str]:
    """Return the topics that DataFrames fill. The group of a feed contains the name of its topic."""
    prefix = feed_group_of(config.application_id, "")
    topics = (group.removeprefix(prefix) for group in _groups(config, admin) if group.startswith(prefix))
    return sorted({f"{config.application_id}-{topic}" for topic in topics} & admin.topics().keys())
