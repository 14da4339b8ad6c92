"""`WantedTopics`: the topics of one subscription, by name or by a pattern of Python, whose matches come and go."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection

from confluent_kafka import KafkaException

from kstreams.log.kafka.connection import Connection

_logger = logging.getLogger("kstreams.groups")
_ASK_S = 1.0  # a member that waits longer does not read meanwhile


class WantedTopics:
    """The topics of one subscription.

    Parameters
    ----------
    connection : Connection
    wanted : collection of str, or pattern
        Names, or what whole names match.
    max_age_ms : int
        After how long it looks for matches again.
    """

    def __init__(self, connection: Connection, wanted: Collection[str] | re.Pattern[str], max_age_ms: int) -> None:
        self._connection = connection
        self._max_age_ms = max_age_ms
        self._pattern = wanted if isinstance(wanted, re.Pattern) else None
        self._names = [] if isinstance(wanted, re.Pattern) else sorted(set(wanted))
        self._looked_ms: int | None = None
        self._warned = False

    def changed(self) -> list[str] | None:
        """The names to subscribe to, if they are others than at the last look."""
        now_ms = self._connection.clock.uptime_ms()
        is_first = self._looked_ms is None
        if not is_first and (self._pattern is None or now_ms - (self._looked_ms or 0) < self._max_age_ms):
            return None
        there = self._there()
        self._looked_ms = now_ms
        if self._pattern is None:
            self._warn(there)
            return self._names
        found = sorted(name for name in there or () if self._pattern.fullmatch(name))
        if there is None or found == self._names:
            return None
        self._names = found
        return found

    def _there(self) -> Collection[str] | None:
        """The topics of the cluster; None when no broker tells them now."""
        try:
            return self._connection.topics_now(_ASK_S)
        except KafkaException as error:
            _logger.warning("The brokers of %s do not tell their topics: %s", self._connection.servers, error)
            return None

    def _warn(self, there: Collection[str] | None) -> None:
        for name in self._names:
            if there is not None and name not in there:
                _logger.warning("There is no topic %r yet: it is read when it is created.", name)
