"""The identities of sinks: the names under which targets keep offsets, in a compacted topic of the group.

`kstreams reset` deletes the topic. The sinks then have new identities, for which no target has an offset.
"""

from __future__ import annotations

import uuid
from contextlib import suppress

from kstreams.connectors.positions import rows_of
from kstreams.errors import FencedError, TopicExistsError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Log


def identities_topic(group: str) -> str:
    """Return the name of the topic with the identities of a group's sinks.

    Examples
    --------
    >>> identities_topic("flights")
    'flights-sinks'
    """
    return f"{group}-sinks"


def identity_of(log: Log, group: str, name: str) -> str:
    """Return the identity of a sink. The first process that asks chooses it."""
    topic = identities_topic(group)
    with log.admin() as admin, suppress(TopicExistsError):
        if topic not in admin.topics():
            admin.create_topic(topic, 1, {"cleanup.policy": "compact"})
    while True:
        with suppress(FencedError):  # another process asks at the same time
            return _stored_or_new(log, topic, group, name)


def _stored_or_new(log: Log, topic: str, group: str, name: str) -> str:
    # From here on, no other process can write: the transactional id fences it.
    with log.producer({"transactional.id": topic}) as producer:
        stored = _read(log, topic, name)
        if stored is not None:
            return stored
        identity = f"{group}-{name}-{uuid.uuid4().hex[:12]}"
        producer.begin_transaction()
        producer.send(topic, name.encode(), identity.encode())
        producer.commit_transaction()
        return identity


def _read(log: Log, topic: str, name: str) -> str | None:
    stored = None
    for row in rows_of(log, TopicPartition(topic, 0)):
        stored = row.value if row.key == name.encode() else stored
    return None if stored is None else stored.decode()
