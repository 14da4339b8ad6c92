"""The check of a bundle: whether an application can continue from it, by topology, tasks and topics."""

from __future__ import annotations

import logging
from collections import Counter

from kstreams.errors import StateError, TopologyError
from kstreams.log.api import Admin
from kstreams.processor.topology.fingerprint import changes, decode_fingerprint, fingerprint_of, refusal
from kstreams.processor.topology.layout import Layout
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.processor.topology.topology import Topology
from kstreams.state.bundle import Bundle

logger = logging.getLogger(__name__)


def require_fitting(bundle: Bundle, topology: Topology, layout: Layout, application_id: str, admin: Admin) -> None:
    """Raise if an application cannot continue from a bundle; log changes of the topology since the export.

    Raises
    ------
    StateError
        If the bundle is of another application or another log, or damaged.
    TopologyError
        If topology or topics have changed so that the state does not fit.
    """
    if bundle.origin.application != application_id:
        raise StateError(
            f"{bundle.folder} holds state of the application {bundle.origin.application!r}, not of {application_id!r}: "
            f"import it with -c application.id={bundle.origin.application}."
        )
    _require_topology(bundle, topology)
    _require_tasks(bundle, layout)
    _require_topics(bundle, layout, admin)
    bundle.check()


def _require_topology(bundle: Bundle, topology: Topology) -> None:
    old = decode_fingerprint(bundle.origin.topology.encode(), str(bundle.folder))
    differences = changes(old, fingerprint_of(topology), by_number=True)
    refused = refusal(differences, str(bundle.folder))
    if refused is not None:
        raise TopologyError(refused)
    for change in differences:
        logger.warning("the topology has changed: %s", change.text)


def _require_tasks(bundle: Bundle, layout: Layout) -> None:
    stateful = Counter(plan.id.sub_topology for plan in layout.tasks if plan.sub_topology.stores)
    for sub, count in stateful.items():
        tasks = {task for task in bundle.tasks if task.partition("_")[0] == str(sub)}
        if tasks != {str(TaskId(sub, partition)) for partition in range(count)}:
            raise TopologyError(
                f"{bundle.folder} holds {len(tasks)} tasks of sub-topology {sub}, but there are {count} here: its "
                "topics must have as many partitions as they had when the state was exported."
            )


def _require_topics(bundle: Bundle, layout: Layout, admin: Admin) -> None:
    read = {source for plan in layout.tasks for source in plan.inputs}
    offsets = {source: offset for source, offset in bundle.origin.offsets.items() if source in read}
    ends = admin.end_offsets(sorted(offsets), committed_only=False)
    for source, offset in offsets.items():
        if not 0 <= offset <= ends[source]:
            raise StateError(
                f"The state in {bundle.folder} was made of {source} up to offset {offset}, but the topic ends at "
                f"{ends[source]}: it is the state of another log."
            )
