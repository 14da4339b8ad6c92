"""The functions behind `kstreams run`, `explain`, `reset` and more; each imports pyspark only when it is called."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kstreams.config import Config
from kstreams.kernel.timestamps import TimestampExtractor
from kstreams.processor.topology.barriers import Upstream, feeding, in_cycles
from kstreams.processor.topology.nodes import SourceNode, SubTopology
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.connectors import ApplicationConnectors, guarantees
from kstreams.runtime.spark.cluster.session import require_pyspark
from kstreams.runtime.spark.connector_places import connector_places
from kstreams.runtime.spark.coupling import Admission, admissions
from kstreams.runtime.spark.settings import SparkSettings, needs_tasks

if TYPE_CHECKING:
    import pyarrow as pa

    from kstreams.runtime.deletions import Deletion
    from kstreams.runtime.spark.progress import SparkProgress
    from kstreams.state.bundle import Bundle

__all__ = ["code", "connectors_of", "explain", "export_state", "import_state", "reset", "run", "sql"]

WAIT_SECONDS = 0.2
"""The time between two checks whether a run is to stop."""

SHARES = (
    "a function extracts the times of these records, or of records that tasks read with them: each step takes a share "
    "of every partition, and only the records within a step are in order of time"
)
AFTER_OTHERS = (
    "it reads records of a foreign-key join, or of another cycle of sub-topologies, next to records of another topic "
    "or after another repartition: on neither engine do such records have an order across tasks"
)


def step_differences(topology: Topology, default: TimestampExtractor | None) -> dict[str, str]:
    """Return the differences that cutting the input into steps makes, by the name of the operator.

    Parameters
    ----------
    topology : Topology
    default : callable or None
        The timestamp extractor of sources without one.
    """
    subs = [sub for sub in topology.sub_topologies if not sub.is_global]
    read = {sub.id: {topic for source in sub.sources for topic in _topics(source)} for sub in subs}
    written = {sub.id: {str(sink.topic) for sink in sub.sinks} for sub in subs}
    internal = set().union(*read.values()) & set().union(*written.values())
    upstream = {number: {w for w in written if written[w] & topics & internal} for number, topics in read.items()}
    differences = _cut_by_shares(subs, admissions(subs, read, upstream, internal, default))
    unordered = internal - _ordered(written, upstream)
    rewritten = internal & set().union(*(written[sub.id] for sub in subs if read[sub.id] & unordered))
    differences |= {name: AFTER_OTHERS for sub in subs for name in _after_others(sub, unordered, rewritten)}
    return {topology.origin.get(name, name): difference for name, difference in differences.items()}


def _cut_by_shares(subs: Sequence[SubTopology], cut: Iterable[Admission]) -> dict[str, str]:
    """Return the difference of each source whose topics are cut by shares of the backlog, not by time."""
    shared = {topic for admission in cut if not admission.by_time for topic in admission.topics}
    return {source.name: SHARES for sub in subs for source in sub.sources if shared.intersection(_topics(source))}


def _ordered(written: Mapping[int, Collection[str]], upstream: Upstream) -> set[str]:
    """Return the topics that no cycle of sub-topologies writes: their records are in order of time."""
    cyclic = in_cycles(upstream)
    return {topic for sub, topics in written.items() if sub not in cyclic for topic in topics}


def _after_others(sub: SubTopology, unordered: Collection[str], rewritten: Collection[str]) -> Iterator[str]:
    """Yield the stateful nodes that read an unordered topic next to another topic, or a rewritten topic.

    Records of an unordered topic have no order across tasks. A rewritten topic is one whose writers read an unordered
    topic.
    """
    topics = {source.name: set(_topics(source)) for source in sub.sources}
    for node in (node for node in sub.nodes if getattr(node, "stores", ())):
        topics_read = {topic for source in feeding(sub, node.name) for topic in topics[source]}
        if not topics_read.isdisjoint(unordered if len(topics_read) > 1 else rewritten):
            yield node.name


def _topics(source: SourceNode) -> list[str]:
    """Return the topics of a source. A pattern is one item, in place of the topics that it matches."""
    return [*source.topics, *([] if source.pattern is None else [source.pattern.pattern])]


def run(
    topology: Topology,
    config: Config,
    *,
    once: bool = False,
    until_end: bool = False,
    on_progress: Callable[[SparkProgress], None] | None = None,
    stop: threading.Event | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Run a topology on Spark until its input ends, or until `stop` is set.

    Parameters
    ----------
    topology : Topology
    config : Config
        Must have `application.id` and a home of topics. Keys `spark.kstreams.*` are settings of this engine; other
        keys `spark.*` are passed to Spark.
    once, until_end : bool
        Stop when all records that the topics hold now are processed; with `until_end`, also close open windows.
    on_progress : callable, optional
        Called after every step with a `SparkProgress`.
    stop : threading.Event, optional
        Ends the run when it is set.
    say : callable
        Called with a line of text before each part of the start that takes seconds.

    Raises
    ------
    EngineUnavailableError
        If Java, PySpark or jars are missing.
    KStreamsError
        The error that ended the run, as on the native engine.
    """
    require_pyspark()
    from kstreams.runtime.spark.run import start

    run = start(topology, None, config, once=once, until_end=until_end, on_progress=on_progress, say=say)
    stop = stop or threading.Event()
    try:
        while not run.await_termination(WAIT_SECONDS):
            if stop.is_set():
                run.stop()
    finally:
        run.stop()


def reset(topology: Topology, config: Config, *, dry_run: bool = False) -> list[Deletion]:
    """Delete checkpoint, state and positions of an application, so that its next run processes all input again.

    Return what was deleted, or with `dry_run` what would be deleted.
    """
    from kstreams.log import home_of
    from kstreams.runtime.spark.reset import delete_application, planned_deletions
    from kstreams.runtime.spark.runner import driver_lock

    with driver_lock(config, shared=False), home_of(config).open(config) as log:
        connectors = connectors_of(topology, config)
        return planned_deletions(config, log, connectors) if dry_run else delete_application(config, log, connectors)


class ConnectorDecision(NamedTuple):
    """The path `connector` of a source or sink, its guarantee, and where its tasks run."""

    operator: str
    path: str
    why: str
    declared_at: str


def explain(topology: Topology, config: Config) -> list[object]:
    """Return the path of every operator on Spark and the reason, as named tuples. Needs neither Spark nor topics.

    Of a connector it returns the guarantee. The reason also names the differences that cutting the input into steps
    makes.

    Raises
    ------
    TopologyError
        If PySpark is installed, and a function refers to an object that its pickler cannot send to workers.
    """
    from kstreams.kernel.timestamps import extractor_of
    from kstreams.runtime.spark.relational.path_plan import plan_of

    if find_spec("pyspark") is not None:
        from kstreams.runtime.spark.cluster.unshippable import require_shippable

        require_shippable(topology, config)
    settings = SparkSettings.of(config)
    decisions = plan_of(topology, settings.path, needs_tasks(config)).decisions
    differences = step_differences(topology, extractor_of(config["default.timestamp.extractor"]))
    operators = [
        decision._replace(why="; but ".join([decision.why, *filter(None, [differences.get(decision.operator)])]))
        for decision in decisions
    ]
    places = connector_places(topology, settings.connectors)
    connectors = [
        ConnectorDecision(name, "connector", f"{why}; its tasks run {_WHERE[places[name]]}", declared_at)
        for name, why, declared_at in guarantees(topology)
    ]
    return [*operators, *connectors]


_WHERE = {"driver": "in the driver", "executors": "on the executors"}
"""The place of tasks in words."""


def connectors_of(topology: Topology, config: Config) -> ApplicationConnectors:
    """Return the sources and sinks with the groups and topics that they have on Spark."""
    name = config.application_id
    prefix = SparkSettings.of(config).prefix
    return ApplicationConnectors(topology.with_connector_topics(name, prefix), name, prefix)


def code(topology: Topology, config: Config) -> str:
    """Return the text of a PySpark program that computes what a topology writes; see `program_of`."""
    from kstreams.runtime.spark.code.program import program_of

    return program_of(topology, config, partial(_partitions_of, config))


def _partitions_of(config: Config, topic: str) -> int | None:
    """Return the number of partitions of a topic; None if there is no such topic."""
    from kstreams.log import home_of

    with home_of(config).open(config) as log, log.admin() as admin:
        description = admin.topics().get(topic)
    return None if description is None else description.partitions


def export_state(topology: Topology, config: Config, folder: Path) -> Bundle:
    """Write the state of an application after its last step to a folder. Raises StateError while it runs."""
    from kstreams.log import home_of
    from kstreams.runtime.spark.runner import driver_lock
    from kstreams.runtime.spark.saved_state.bundles import write_state

    with driver_lock(config, shared=False), home_of(config).open(config) as log:
        return write_state(connectors_of(topology, config).topology, config, log, folder)


def import_state(topology: Topology, config: Config, folder: Path, *, replace: bool = False) -> Bundle:
    """Let an application continue from a state that any engine has exported; `replace` deletes its current state."""
    from kstreams.log import home_of
    from kstreams.runtime.spark.runner import driver_lock
    from kstreams.runtime.spark.saved_state.bundles import read_state
    from kstreams.state.bundle import Bundle

    bundle = Bundle(folder)
    with driver_lock(config, shared=False), home_of(config).open(config) as log:
        read_state(connectors_of(topology, config).topology, config, log, bundle, replace=replace)
    return bundle


def sql(topology: Topology, config: Config, query: str, as_of_ms: int | None, step: int | None) -> pa.Table:
    """Query the stores as they were after a step, by default the last step. The application may run meanwhile."""
    from kstreams.runtime.spark.saved_state.step_stores import StepStores

    with StepStores(topology, config, step) as stores:
        return stores.sql(query, as_of_ms)
