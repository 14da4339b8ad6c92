"""The checkpoint of an application: whose it is, and whether it fits the topology that runs."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Mapping

from kstreams.errors import TopologyError
from kstreams.processor.topology.fingerprint import (
    TopologyFingerprint,
    decode_fingerprint,
    encode_fingerprint,
    fingerprint_of,
)
from kstreams.processor.topology.fingerprint_changes import changes, refusal
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage
from kstreams.runtime.spark.tasks.manifests import MANIFESTS

CHECKPOINT_ID = "id"
_TOPOLOGY = "topology.json"
_NOTE = "sub-topology {} is a relational query of {}"
_QUERY = re.compile(r"sub-topology (\d+) is a relational query")
logger = logging.getLogger(__name__)


class Checkpoint:
    """One place per application: Spark's own checkpoint, plans and manifests of steps, state files.

    Parameters
    ----------
    storage : CheckpointStorage
        Shared by driver and executors.
    topology : Topology
        State belongs to sub-topologies by number: where its numbers have changed, it cannot go on.
    queries : mapping of int to str
        The sub-topologies that are queries of Spark, which keeps their state, and what they are: they must stay so.

    Raises
    ------
    TopologyError
        When the topology cannot go on with the state that is there: lists what has changed.
    """

    def __init__(self, storage: CheckpointStorage, topology: Topology, queries: Mapping[int, str]) -> None:
        self.storage = storage
        self.id = storage.publish(CHECKPOINT_ID, uuid.uuid4().hex.encode()).decode()
        _recognise(storage, fingerprint_of(topology, (_NOTE.format(*query) for query in sorted(queries.items()))))


def _recognise(storage: CheckpointStorage, new: TopologyFingerprint) -> None:
    """Compare a topology with the one that the checkpoint was written for, and remember it.

    A checkpoint says nothing as long as nothing was processed.
    """
    old = decode_fingerprint(storage.read(_TOPOLOGY), storage.place(_TOPOLOGY)) if _has_topology(storage) else new
    if _has_begun(storage, old):
        differences = changes(old, new, by_number=True)
        refused = refusal(differences, storage.location)
        if refused is not None:
            raise TopologyError(refused)
        for change in differences:
            logger.warning("the topology has changed: %s", change.text)
    storage.write(_TOPOLOGY, encode_fingerprint(new))


def _has_topology(storage: CheckpointStorage) -> bool:
    return _TOPOLOGY in storage.names("")


def _has_begun(storage: CheckpointStorage, topology: TopologyFingerprint) -> bool:
    """Whether there is the state of a step, or a batch of one of the queries that there were."""
    queries = (query for note in topology.notes if (query := _QUERY.match(note)))
    return bool(storage.names(MANIFESTS)) or any(storage.names(f"query-{query[1]}/commits") for query in queries)
