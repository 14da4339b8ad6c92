"""`forget`: deletes the internal topics, the committed offsets and the state of an application."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from kstreams.config import Config
from kstreams.errors import StateError
from kstreams.log.api import Admin
from kstreams.os.private import write_private
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.connectors import ApplicationConnectors
from kstreams.runtime.deletions import Deletion
from kstreams.runtime.native.group.assignment_topic import assignment_topic
from kstreams.runtime.native.state.locks import state_folder
from kstreams.runtime.native.state.topology_file import TopologyFile
from kstreams.runtime.native.topics import internal_topics

_TOPIC = "topic"
_OFFSETS = "offsets"
_BEGUN = "reset-begun"


def remains(topology: Topology, config: Config, admin: Admin) -> list[Deletion]:
    """Return the existing internal topics, also of earlier topologies, the state and the committed offsets."""
    existing = admin.topics()
    name = config.application_id
    before = (f"{name}-{topic}" for topic in TopologyFile(state_folder(config)).read().internal_topics)
    connectors = ApplicationConnectors(topology.with_connector_topics(name), name)
    own = {*internal_topics(topology, name), *connectors.internal_topics(), *before, assignment_topic(name)}
    topics = [Deletion(_TOPIC, topic) for topic in sorted(own & existing.keys())]
    if any(_stores(config)):
        topics.append(Deletion("state", str(state_folder(config))))
    groups = {name, *connectors.groups()}
    topics.extend(Deletion(_OFFSETS, group) for group in sorted(groups.intersection(admin.groups())))
    return topics


def forget(topology: Topology, config: Config, admin: Admin) -> list[Deletion]:
    """Delete what remains of an application whose locks the caller holds. Return the deletions.

    If it is interrupted, the application does not start before it is finished. The offsets are deleted last, so that a
    process on another machine does not process the input again with old state.
    """
    deletions = remains(topology, config, admin)
    write_private(_begun(config), b"")
    for deletion in deletions:
        if deletion.what == _TOPIC:
            admin.delete_topic(deletion.name)
    for folder in _stores(config):
        shutil.rmtree(folder)
    groups = [deletion.name for deletion in deletions if deletion.what == _OFFSETS]
    for group in sorted(groups, key=config.application_id.__eq__):  # that of the application last
        admin.delete_group(group)
    TopologyFile(state_folder(config)).delete()
    _begun(config).unlink()
    return deletions


def refuse_half_forgotten(config: Config) -> None:
    """Raise StateError if a reset was interrupted."""
    if _begun(config).exists():
        raise StateError(
            f"The reset of the application {config.application_id!r} was interrupted, and a part of its state is gone: "
            "finish it with `kstreams reset`, then start the application."
        )


def _begun(config: Config) -> Path:
    """Return the file that exists while a reset is not finished."""
    return state_folder(config) / _BEGUN


def _stores(config: Config) -> Iterator[Path]:
    """Return the folders of tasks, global tables and further processes."""
    return (entry for entry in state_folder(config).iterdir() if entry.is_dir())
