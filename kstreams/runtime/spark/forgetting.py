"""What an application leaves on Spark when it is to begin anew: no checkpoint, no positions."""

from __future__ import annotations

import re

from kstreams.config import Config
from kstreams.log.api import Log
from kstreams.runtime.spark.program import group_of
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.storage.opening import open_storage


def forget(config: Config, log: Log) -> None:
    """Delete checkpoint, state and positions of an application."""
    settings, base = SparkSettings.of(config), group_of(config.application_id)
    open_storage(settings.checkpoint_of(config.application_id), settings.conf).clear()
    with log.admin() as admin:
        for group in admin.groups():
            if group == base or re.fullmatch(rf"{re.escape(base)}-\d+", group):  # one for each windowed query
                admin.delete_group(group)
