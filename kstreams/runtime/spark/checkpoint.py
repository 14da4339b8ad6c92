"""`Checkpoint`: the id of an application's checkpoint, and the check that it fits the topology."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Mapping

from kstreams.errors import TopologyError
from kstreams.processor.topology.fingerprint import (
    TopologyFingerprint,
    changes,
    decode_fingerprint,
    encode_fingerprint,
    fingerprint_of,
    refusal,
)
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage
from kstreams.runtime.spark.tasks.manifests import MANIFESTS

CHECKPOINT_ID = "id"
_TOPOLOGY = "topology.json"
_NOTE = "sub-topology {} is a relational query of {}"
_QUERY = re.compile(r"sub-topology (\d+) is a relational query")
logger = logging.getLogger(__name__)


class Checkpoint:
    """The checkpoint of one application: Spark's own checkpoints, plans and manifests of steps, state files.

    Parameters
    ----------
    storage : CheckpointStorage
        Shared by driver and executors.
    topology : Topology
        Its sub-topologies must have the same numbers as before, since state is stored by these numbers.
    queries : mapping of int to str
        The sub-topologies that run as queries of Spark, with a description of each query. They must stay the same,
        since Spark keeps their state.

    Raises
    ------
    TopologyError
        If the topology cannot continue the existing state; the message lists the changes.
    """

    def __init__(self, storage: CheckpointStorage, topology: Topology, queries: Mapping[int, str]) -> None:
        self.storage = storage
        self.id = storage.publish(CHECKPOINT_ID, uuid.uuid4().hex.encode()).decode()
        _check_topology(storage, fingerprint_of(topology, (_NOTE.format(*query) for query in sorted(queries.items()))))


def _check_topology(storage: CheckpointStorage, new: TopologyFingerprint) -> None:
    """Compare a topology with the one that the checkpoint was written for, and write the new fingerprint.

    A checkpoint without a committed step fits every topology.
    """
    old = decode_fingerprint(storage.read(_TOPOLOGY), storage.location_of(_TOPOLOGY)) if _has_topology(storage) else new
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
    """Return True if a step, or a batch of one of the topology's queries, has begun."""
    queries = (query for note in topology.notes if (query := _QUERY.match(note)))
    return bool(storage.names(MANIFESTS)) or any(storage.names(f"query-{query[1]}/commits") for query in queries)
