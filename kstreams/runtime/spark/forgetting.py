"""What an application leaves on Spark when it is to begin anew: no checkpoint, no positions."""

from __future__ import annotations

import re

from kstreams.config import Config
from kstreams.log.api import Admin, Log
from kstreams.runtime.forgotten import Forgotten
from kstreams.runtime.spark.checkpoint import CHECKPOINT_ID
from kstreams.runtime.spark.io.staged.publication import PUBLISHED
from kstreams.runtime.spark.program import group_of
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage
from kstreams.runtime.spark.storage.opening import open_storage


def remains(config: Config, log: Log) -> list[Forgotten]:
    """The checkpoint and the committed positions that are there."""
    storage = _storage(config)
    checkpoint = [Forgotten("checkpoint", storage.location)] if storage.names("") else []
    with log.admin() as admin:
        return checkpoint + [Forgotten("offsets", group) for group in _groups(config, admin)]


def forget(config: Config, log: Log) -> list[Forgotten]:
    """Delete checkpoint, state and positions of an application; what was there of them.

    Its id goes first. If the rest stays, the next run finds steps that are not its own, and is refused.
    """
    found, storage = remains(config, log), _storage(config)
    storage.delete([CHECKPOINT_ID])
    storage.clear()
    with log.admin() as admin:
        for group in _groups(config, admin):
            admin.delete_group(group)
    return found


def _storage(config: Config) -> CheckpointStorage:
    settings = SparkSettings.of(config)
    return open_storage(settings.checkpoint_of(config.application_id), settings.conf)


def _groups(config: Config, admin: Admin) -> list[str]:
    """One for the tasks and one for each windowed query, each with those of its publishers."""
    base = re.escape(group_of(config.application_id))
    return [group for group in admin.groups() if re.fullmatch(rf"{base}(-\d+)?({PUBLISHED})?", group)]
