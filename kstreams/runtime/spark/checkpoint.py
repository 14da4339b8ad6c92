"""The checkpoint of an application: whose it is, and whether it fits the topology that runs."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Iterator, Mapping

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
logger = logging.getLogger(__name__)


class Checkpoint:
    """One place per application: Spark's own checkpoint, plans and manifests of steps, state files.

    Parameters
    ----------
    storage : CheckpointStorage
        Shared by driver and executors.
    topology : Topology
        State belongs to sub-topologies by number: where its numbers have changed, it cannot go on.
    queries : mapping of int to collection of int
        The sub-topologies that are queries of Spark, which keeps their state, with all that they compute: they must
        stay the same ones.

    Raises
    ------
    TopologyError
        When the topology cannot go on with the state that is there: lists what has changed.
    """

    def __init__(self, storage: CheckpointStorage, topology: Topology, queries: Mapping[int, Collection[int]]) -> None:
        self.storage = storage
        self.id = storage.publish(CHECKPOINT_ID, uuid.uuid4().hex.encode()).decode()
        _recognise(storage, fingerprint_of(topology, _notes(queries)))


def _notes(queries: Mapping[int, Collection[int]]) -> Iterator[str]:
    for number, members in sorted(queries.items()):
        yield f"sub-topology {number} is relational and windowed"
        yield from (f"sub-topology {other} is part of its query" for other in sorted(members) if other != number)


def _recognise(storage: CheckpointStorage, new: TopologyFingerprint) -> None:
    """Compare a topology with the one that the checkpoint was written for, and remember it.

    A checkpoint without a manifest says nothing: nothing was processed yet.
    """
    names = storage.names("")
    if _TOPOLOGY in names and storage.names(MANIFESTS):
        place = storage.place(_TOPOLOGY)
        found = changes(decode_fingerprint(storage.read(_TOPOLOGY), place), new, by_number=True)
        refused = refusal(found, storage.location)
        if refused is not None:
            raise TopologyError(refused)
        for change in found:
            logger.warning("the topology has changed: %s", change.text)
    storage.write(_TOPOLOGY, encode_fingerprint(new))
