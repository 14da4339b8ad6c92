"""`TopicWatch`: which topics a member wants, by name or pattern, and whether topics came, went or grew since."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable

from kstreams.clock import Clock
from kstreams.log.embedded.catalogue.catalogue import Catalogue
from kstreams.log.groups.subscription import MemberSubscription

_logger = logging.getLogger("kstreams.groups")


class TopicWatch:
    """The topics of one subscription.

    Parameters
    ----------
    catalogue : Catalogue
    clock : Clock
    wanted : collection of str, or pattern
        Names, or what whole names match.
    max_age_ms : int
        After how long it looks again (`metadata.max.age.ms`).
    """

    def __init__(
        self, catalogue: Catalogue, clock: Clock, wanted: Collection[str] | re.Pattern[str], max_age_ms: int
    ) -> None:
        self._catalogue = catalogue
        self._clock = clock
        self._max_age_ms = max_age_ms
        self._pattern = wanted if isinstance(wanted, re.Pattern) else None
        self._names = () if isinstance(wanted, re.Pattern) else tuple(sorted(set(wanted)))
        self._watched: set[str] = set()
        self._known: dict[str, int] = {}
        self._looked_ms = 0
        self._missing: set[str] = set()

    def topics(self) -> tuple[str, ...]:
        """The names of the topics that are wanted now; of a pattern, those that there are."""
        there = self._partitions()
        self._warn(set(self._names) - there.keys())
        pattern = self._pattern
        found = self._names if pattern is None else tuple(name for name in sorted(there) if pattern.fullmatch(name))
        self._remember(found, there)
        return found

    def partitions_for(self, subscriptions: Iterable[MemberSubscription]) -> dict[str, int]:
        """How many partitions the topics have that any member subscribes to; from now on these are watched too."""
        there = self._partitions()
        wanted = {topic for subscription in subscriptions for topic in subscription.topics}
        self._remember(wanted | self._watched, there)
        return {topic: there[topic] for topic in wanted & there.keys()}

    def has_changed(self) -> bool:
        """Whether a topic that is watched came, went or grew; looked at no more often than the age says."""
        now_ms = self._clock.uptime_ms()
        if now_ms - self._looked_ms < self._max_age_ms:
            return False
        self._looked_ms = now_ms
        there = self._partitions()
        matched = {name for name in there if self._pattern is not None and self._pattern.fullmatch(name)}
        return {name: there[name] for name in (self._watched | matched) & there.keys()} != self._known

    def _remember(self, watched: Collection[str], there: dict[str, int]) -> None:
        self._watched = set(watched)
        self._known = {name: there[name] for name in self._watched & there.keys()}
        self._looked_ms = self._clock.uptime_ms()

    def _warn(self, missing: set[str]) -> None:
        for name in sorted(missing - self._missing):
            _logger.warning("There is no topic %r yet: it is read when it is created.", name)
        self._missing = missing

    def _partitions(self) -> dict[str, int]:
        return dict(self._catalogue.read("SELECT name, partitions FROM topics"))
