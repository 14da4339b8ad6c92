"""`TopologyFile`: the topology that wrote the state. A changed topology is accepted if its state fits."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from kstreams.errors import TopologyError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Admin
from kstreams.os.private import private_folder, write_private
from kstreams.processor.topology.fingerprint import (
    TopologyFingerprint,
    changes,
    decode_fingerprint,
    encode_fingerprint,
    moves,
    refusal,
)

logger = logging.getLogger(__name__)

_FILE = "topology.json"
_MOVING = "moving-"


class TopologyFile:
    """The fingerprint of a topology in the state folder of an application.

    Parameters
    ----------
    folder : Path
        The application's state folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / _FILE

    @property
    def exists(self) -> bool:
        """True if the application has run in this folder."""
        return self._path.exists()

    def read(self) -> TopologyFingerprint:
        """Return the fingerprint of the topology that wrote the state, or an empty one if the file does not exist."""
        return (
            decode_fingerprint(self._path.read_bytes(), str(self._path))
            if self._path.exists()
            else TopologyFingerprint()
        )

    def check(self, new: TopologyFingerprint, application_id: str, admin: Admin) -> None:
        """Log what has changed since the last run.

        Raises
        ------
        TopologyError
            If the state does not fit the new topology. The message lists the changes.
        """
        old = _with_state(self.read(), application_id, admin)
        differences = changes(old, new) if old.stores else []
        refused = refusal(differences, str(self._folder))
        if refused is not None:
            raise TopologyError(refused)
        for change in differences:
            logger.warning("the topology has changed: %s", change.text)

    def accept(self, new: TopologyFingerprint) -> None:
        """Move the folders of tasks whose sub-topology has another id now, and write the new topology.

        Ids may be exchanged, so folders move in two steps, with the new description written between them: whatever
        step a crash comes after, the next start continues from there.
        """
        for old_id, new_id in moves(self.read(), new).items():
            for task in self._folder.glob(f"{old_id}_*"):
                task.rename(self._folder / f"{_MOVING}{new_id}_{task.name.partition('_')[2]}")
        self._write(new)
        for task in self._folder.glob(f"{_MOVING}*"):
            target = self._folder / task.name.removeprefix(_MOVING)
            shutil.rmtree(target, ignore_errors=True)  # of a sub-topology that is gone
            task.rename(target)

    def waiting(self, task: str) -> Path:
        """The folder in which the state of a task waits until a topology is accepted: then it is in its place."""
        return self._folder / f"{_MOVING}{task}"

    def drop_waiting(self) -> None:
        """Delete what waits: an import was interrupted before it counted."""
        for task in self._folder.glob(f"{_MOVING}*"):
            shutil.rmtree(task)

    def delete(self) -> None:
        """Delete the file: the state is deleted."""
        self._path.unlink(missing_ok=True)

    def _write(self, shape: TopologyFingerprint) -> None:
        private_folder(self._folder)
        write_private(self._path, encode_fingerprint(shape))


def _with_state(shape: TopologyFingerprint, application_id: str, admin: Admin) -> TopologyFingerprint:
    """The shape without what is empty: an application that has processed nothing may change as it likes."""
    if application_id not in admin.groups():
        return TopologyFingerprint()
    stores = tuple(
        store
        for store in shape.stores
        if store.restored_from != f"{store.name}-changelog" or _ends(store.restored_from, application_id, admin)
    )
    unread_topics = tuple(topic for topic in shape.repartition_topics if _is_waiting(topic, application_id, admin))
    return TopologyFingerprint(stores=stores, repartition_topics=unread_topics)


def _ends(topic: str, application_id: str, admin: Admin) -> dict[TopicPartition, int]:
    """Return the end offsets of the partitions of an internal topic that have records."""
    description = admin.topics().get(f"{application_id}-{topic}")
    sources = (
        []
        if description is None
        else [TopicPartition(description.name, number) for number in range(description.partitions)]
    )
    return {source: end for source, end in admin.end_offsets(sources).items() if end}


def _is_waiting(topic: str, application_id: str, admin: Admin) -> bool:
    """Return whether an internal topic has records that are not processed."""
    ends = _ends(topic, application_id, admin)
    committed = admin.committed(application_id, list(ends))
    return any(source not in committed or committed[source].offset < end for source, end in ends.items())
