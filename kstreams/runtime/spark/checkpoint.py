"""The checkpoint folder of an application: whose it is, and whether it fits the topology that runs."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Collection
from pathlib import Path

from kstreams.errors import TopologyError
from kstreams.processor.topology import Topology


class Checkpoint:
    """One folder per application: Spark's own checkpoint, plans of steps, state files.

    Parameters
    ----------
    root : Path
        A folder that driver and executors share.
    topology : Topology
        State belongs to sub-topologies by number, so another topology must not go on with it.
    streaming : collection of int
        The sub-topologies that Spark itself keeps the state of: they must stay the same ones.

    Raises
    ------
    TopologyError
        When the folder was written for another topology.
    """

    def __init__(self, root: Path, topology: Topology, streaming: Collection[int] = ()) -> None:
        self.root = str(root)
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.id = _written_once(root / "id", uuid.uuid4().hex)
        shown = topology.describe() + "".join(f"Sub-topology {n}: relational, windowed\n" for n in sorted(streaming))
        if _written_once(root / "topology.txt", shown) != shown:
            raise TopologyError(
                f"The checkpoint in {root} was written by another topology or for another path: run once with --reset "
                "to start anew, or give the application another id."
            )


def remove_checkpoint(root: Path) -> None:
    """Forget everything that an application's earlier runs left."""
    shutil.rmtree(root, ignore_errors=True)


def _written_once(path: Path, text: str) -> str:
    if not path.exists():
        scratch = path.with_suffix(".tmp")
        scratch.write_text(text)
        scratch.rename(path)
    return path.read_text()
