"""What an application leaves when it is to begin anew: nothing in the log, nothing in its state folder."""

from __future__ import annotations

import shutil

from kstreams.config import Config
from kstreams.log.api import Admin
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.native.group.assignment_topic import assignment_topic
from kstreams.runtime.native.state.locks import state_folder
from kstreams.runtime.native.state.topology_file import TopologyFile
from kstreams.runtime.native.topics import internal_topics


def forget(topology: Topology, config: Config, admin: Admin) -> None:
    """Delete the internal topics, committed offsets and state of an application whose locks the caller holds."""
    known, existing = TopologyFile(state_folder(config)), admin.topics()
    left = {f"{config.application_id}-{name}" for name in known.read().internal_topics}
    left.add(assignment_topic(config.application_id))
    for topic in {*internal_topics(topology, config.application_id), *left}:
        if topic in existing:
            admin.delete_topic(topic)
    admin.delete_group(config.application_id)
    for entry in state_folder(config).iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
    known.delete()
