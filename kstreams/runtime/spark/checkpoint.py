"""The checkpoint folder of an application: whose it is, and whether it fits the topology that runs."""

from __future__ import annotations

import logging
import shutil
import uuid
from collections.abc import Collection
from pathlib import Path

from kstreams.errors import TopologyError
from kstreams.private import private_folder, write_private
from kstreams.processor.topology.fingerprint import (
    TopologyFingerprint,
    decode_fingerprint,
    encode_fingerprint,
    fingerprint_of,
)
from kstreams.processor.topology.fingerprint_changes import changes, refusal
from kstreams.processor.topology.topology import Topology

logger = logging.getLogger(__name__)


class Checkpoint:
    """One folder per application: Spark's own checkpoint, plans of steps, state files.

    Parameters
    ----------
    root : Path
        A folder that driver and executors share.
    topology : Topology
        State belongs to sub-topologies by number: where its numbers have changed, it cannot go on.
    streaming : collection of int
        The sub-topologies that Spark itself keeps the state of: they must stay the same ones.

    Raises
    ------
    TopologyError
        When the topology cannot go on with the state in the folder: lists what has changed.
    """

    def __init__(self, root: Path, topology: Topology, streaming: Collection[int] = ()) -> None:
        self.root = str(root)
        private_folder(root)
        self.id = _written_once(root / "id", uuid.uuid4().hex)
        notes = (f"sub-topology {number} is relational and windowed" for number in sorted(streaming))
        _recognise(root, fingerprint_of(topology, notes))


def remove_checkpoint(root: Path) -> None:
    """Forget everything that an application's earlier runs left."""
    shutil.rmtree(root, ignore_errors=True)


def _recognise(root: Path, new: TopologyFingerprint) -> None:
    """Compare a topology with the one that the folder was written for, and remember it.

    A folder without state says nothing: nothing was processed yet.
    """
    path = root / "topology.json"
    if path.exists() and any((root / "state").glob("*")):
        found = changes(decode_fingerprint(path.read_bytes(), str(path)), new, by_number=True)
        refused = refusal(found, str(root))
        if refused is not None:
            raise TopologyError(refused)
        for change in found:
            logger.warning("the topology has changed: %s", change.text)
    write_private(path, encode_fingerprint(new))


def _written_once(path: Path, text: str) -> str:
    if not path.exists():
        write_private(path, text.encode())
    return path.read_text()
