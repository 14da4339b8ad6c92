"""What an application leaves on Spark when it is to begin anew: no checkpoint, no positions, none of what fed it."""

from __future__ import annotations

import re

from kstreams.config import Config
from kstreams.log.api import Admin, Log
from kstreams.runtime.deletions import Deletion
from kstreams.runtime.spark.checkpoint import CHECKPOINT_ID
from kstreams.runtime.spark.io.staged.publication import PUBLISHED
from kstreams.runtime.spark.program import feed_group_of, group_of
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage
from kstreams.runtime.spark.storage.opening import open_storage


def remains(config: Config, log: Log) -> list[Deletion]:
    """The checkpoint and the committed positions that are there."""
    storage = _storage(config)
    checkpoint = [Deletion("checkpoint", storage.location)] if storage.names("") else []
    with log.admin() as admin:
        groups = [Deletion("offsets", group) for group in _groups(config, admin)]
        return checkpoint + groups + [Deletion("topic", topic) for topic in _fed_topics(config, admin)]


def forget(config: Config, log: Log) -> list[Deletion]:
    """Delete checkpoint, state and positions of an application; what was there of them.

    Its id goes first. If the rest stays, the next run finds steps that are not its own, and is refused.
    """
    deletions = remains(config, log)
    storage = _storage(config)
    storage.delete([CHECKPOINT_ID])
    storage.clear()
    with log.admin() as admin:
        for topic in _fed_topics(config, admin):
            admin.delete_topic(topic)
        for group in _groups(config, admin):
            admin.delete_group(group)
    return deletions


def _storage(config: Config) -> CheckpointStorage:
    settings = SparkSettings.of(config)
    return open_storage(settings.checkpoint_of(config.application_id), settings.conf)


def _groups(config: Config, admin: Admin) -> list[str]:
    """One for the tasks and one for each windowed query and each feed, each with those of its publishers."""
    base = re.escape(group_of(config.application_id))
    return [group for group in admin.groups() if re.fullmatch(rf"{base}(-\d+|-feed-.+-feed)?({PUBLISHED})?", group)]


def _fed_topics(config: Config, admin: Admin) -> list[str]:
    """The topics that DataFrames have filled: a feed names its topic in its group."""
    before = feed_group_of(config.application_id, "")
    named = (group.removeprefix(before) for group in _groups(config, admin) if group.startswith(before))
    return sorted({f"{config.application_id}-{topic}" for topic in named} & admin.topics().keys())
