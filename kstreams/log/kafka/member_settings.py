"""Settings of a group's member as Kafka's client knows them; what it does not know is refused with the cure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from kstreams.errors import ConfigError
from kstreams.log.groups.member_settings import MEMBER_SETTINGS, check_times
from kstreams.log.settings import read_settings

_ASSIGNORS = ("range", "roundrobin", "cooperative-sticky")
_OF_GROUP = MEMBER_SETTINGS.keys() - {"client.id", "auto.offset.reset"}
_SHORTEST_AGE_MS = 100


def read_member_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that concern the group, checked, over their defaults.

    Kafka's client wants `session.timeout.ms` to be at most `max.poll.interval.ms`. The default follows it.

    Raises
    ------
    ConfigError
    """
    known = {name: given[name] for name in MEMBER_SETTINGS if given.get(name) is not None}
    settings = read_settings("consumer", MEMBER_SETTINGS, known)
    poll_ms = settings["max.poll.interval.ms"]
    session_ms = settings["session.timeout.ms"]
    if "session.timeout.ms" in known and session_ms > poll_ms:
        raise ConfigError(
            f"Kafka's client takes a `session.timeout.ms` ({session_ms}) of at most `max.poll.interval.ms` ({poll_ms})."
        )
    settings["session.timeout.ms"] = session_ms = min(session_ms, poll_ms)
    if "heartbeat.interval.ms" not in known:
        settings["heartbeat.interval.ms"] = max(1, min(settings["heartbeat.interval.ms"], session_ms // 3))
    check_times(settings)
    for assignor in settings["partition.assignment.strategy"]:
        if assignor.name not in _ASSIGNORS:
            raise ConfigError(
                f"Kafka's client knows the assignors {', '.join(_ASSIGNORS)}, not {assignor.name!r}: set "
                "`partition.assignment.strategy` to cooperative-sticky, with which members keep what they may keep."
            )
    return settings


def client_of_member(given: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the client that is the member; it reads nothing."""
    read = {name: settings[name] for name in _OF_GROUP if settings[name] is not None}
    age_ms = read.pop("metadata.max.age.ms")
    return {
        **given,
        **read,
        "partition.assignment.strategy": ",".join(each.name for each in settings["partition.assignment.strategy"]),
        "topic.metadata.refresh.interval.ms": max(_SHORTEST_AGE_MS, age_ms),
        "metadata.max.age.ms": None,
        "auto.offset.reset": "latest",
    }


def client_of_reader(given: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the client that reads what the member is given."""
    reset = settings["auto.offset.reset"]
    lost = "earliest" if isinstance(reset, timedelta) else reset
    return {name: each for name, each in given.items() if name not in _OF_GROUP} | {"auto.offset.reset": lost}
