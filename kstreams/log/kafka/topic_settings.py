"""Settings of topics that Kafka does not know: translated, kept elsewhere, or refused with the cure."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kstreams.errors import ConfigError
from kstreams.log.naming import did_you_mean
from kstreams.log.settings import choice
from kstreams.log.topic_types import KEY_TYPE, VALUE_TYPE

logger = logging.getLogger(__name__)

TYPES = frozenset((KEY_TYPE, VALUE_TYPE))
"""What the records are; Kafka has no place for it."""

_RETENTION_CLOCK = "retention.clock"
_KNOWN = (
    "cleanup.policy", "compression.type", "delete.retention.ms", "max.message.bytes", "message.timestamp.type",
    "message.timestamp.after.max.ms", "message.timestamp.before.max.ms", "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms", "max.compaction.lag.ms", "min.insync.replicas", "retention.bytes", "retention.ms",
    "segment.bytes", "segment.ms", "unclean.leader.election.enable",
)  # fmt: skip


def translated(name: str, config: Mapping[str, str] | None) -> dict[str, str]:
    """The settings of a new topic as Kafka knows them.

    Kafka counts `retention.ms` back from now. What is to be kept by the time of its records (`retention.clock=record`)
    is kept for ever there: the windows of an old year that is replayed would be deleted while they are used.

    Raises
    ------
    ConfigError
        For a `retention.clock` that is no clock.

    Examples
    --------
    >>> translated("t", {"cleanup.policy": "compact", "kstreams.key.type": "int", "retention.clock": "wall"})
    {'cleanup.policy': 'compact'}
    """
    found = {key: value for key, value in (config or {}).items() if key not in TYPES}
    if found.get("compression.type") == "none":
        found["compression.type"] = "uncompressed"
    clock = found.pop(_RETENTION_CLOCK, "wall")
    try:
        choice("wall", "record")(clock)
    except ValueError as expected:
        raise ConfigError(f"The topic setting {_RETENTION_CLOCK!r} takes {expected}, not {clock!r}.") from None
    if clock == "record" and "retention.ms" in found:
        policies = [policy for policy in found.get("cleanup.policy", "delete").split(",") if policy != "delete"]
        logger.warning(
            "Kafka counts retention.ms back from now, so that %s would lose the windows of old records: it keeps them "
            "for ever (cleanup.policy=%s, retention.ms=-1 instead of %s). To bound it, set topic.retention.clock=wall.",
            *(name, ",".join(policies) or "delete", found["retention.ms"]),
        )
        found |= {"retention.ms": "-1"} | ({"cleanup.policy": ",".join(policies)} if policies else {})
    return found


def refusal(name: str, config: Mapping[str, str], why: str) -> ConfigError:
    """The error for settings that the cluster has refused; names the nearest known setting."""
    wrong = next((key for key in config if key in why and key not in _KNOWN), None)
    hint = did_you_mean(wrong, _KNOWN) if wrong else ""
    return ConfigError(f"Kafka refuses the settings of the topic {name!r}: {why}.{hint}")
