"""What `kstreams run`, `explain` and `reset` call. Nothing of Spark is imported before it is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kstreams.config import Config
from kstreams.runtime.spark.cluster.session import require_pyspark
from kstreams.runtime.spark.coupling import Admission
from kstreams.runtime.spark.runner import driver_lock

if TYPE_CHECKING:
    import pyarrow as pa

    from kstreams.processor.topology.topology import Topology
    from kstreams.runtime.deletions import Deletion
    from kstreams.state.bundle import Bundle
from collections.abc import Collection, Iterator, Mapping

from kstreams.kernel.timestamps import TimestampExtractor
from kstreams.processor.topology.barriers import Upstream, feeding, in_cycles
from kstreams.processor.topology.nodes import SourceNode, SubTopology
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.spark.coupling import admissions

SHARES = (
    "a function tells the times of these records, or of some that they meet: each step takes a share of every "
    "partition, in order of time within the step only"
)
AFTER_OTHERS = (
    "it takes what comes from a foreign-key join, or from a topic of yours that the topology writes, beside records of "
    "another topic, or repartitioned again: these are in no order across tasks, and a step may have taken later ones "
    "already"
)


def step_differences(topology: Topology, default: TimestampExtractor | None) -> dict[str, str]:
    """What is not exact, by the name of the operator.

    Parameters
    ----------
    topology : Topology
    default : callable or None
        The timestamp extractor of sources that have none.
    """
    subs = [sub for sub in topology.sub_topologies if not sub.is_global]
    read = {sub.id: {topic for source in sub.sources for topic in _topics(source)} for sub in subs}
    written = {sub.id: {str(sink.topic) for sink in sub.sinks} for sub in subs}
    within = set().union(*read.values()) & set().union(*written.values())
    upstream = {number: {w for w in written if written[w] & topics & within} for number, topics in read.items()}
    differences = _cut_by_shares(subs, admissions(subs, read, upstream, within, default))
    unordered = within - _ordered(topology, written, upstream)
    twice = within & set().union(*(written[sub.id] for sub in subs if read[sub.id] & unordered))
    differences |= {name: AFTER_OTHERS for sub in subs for name in _after_others(sub, unordered, twice)}
    return {topology.origin.get(name, name): difference for name, difference in differences.items()}


def _cut_by_shares(subs: Sequence[SubTopology], cut: Iterable[Admission]) -> dict[str, str]:
    """Return the difference of the sources whose topics are cut by shares of the backlog, not by time."""
    shared = {topic for admission in cut if not admission.by_time for topic in admission.topics}
    return {source.name: SHARES for sub in subs for source in sub.sources if shared.intersection(_topics(source))}


def _ordered(topology: Topology, written: Mapping[int, Collection[str]], upstream: Upstream) -> set[str]:
    """The repartition topics whose records stand in the order of their times: no circle writes them."""
    circles = in_cycles(upstream)
    straight = {topic for sub, topics in written.items() if sub not in circles for topic in topics}
    return straight.intersection(topic.name for topic in topology.repartition_topics)


def _after_others(sub: SubTopology, unordered: Collection[str], twice: Collection[str]) -> Iterator[str]:
    """The nodes with stores that take records of a topic without an order across tasks, and of another topic.

    And those that take records of a topic in `twice`, which follow from those of such a topic.
    """
    topics = {source.name: set(_topics(source)) for source in sub.sources}
    for node in (node for node in sub.nodes if getattr(node, "stores", ())):
        topics_read = {topic for source in feeding(sub, node.name) for topic in topics[source]}
        if not topics_read.isdisjoint(unordered if len(topics_read) > 1 else twice):
            yield node.name


def _topics(source: SourceNode) -> list[str]:
    """The topics of a source; a pattern stands for all that it matches."""
    return [*source.topics, *([] if source.pattern is None else [source.pattern.pattern])]


__all__ = ["explain", "export_state", "import_state", "reset", "run", "sql"]

WAIT_SECONDS = 0.2


def run(
    topology: Topology,
    config: Config,
    *,
    once: bool = False,
    until_end: bool = False,
    on_progress: Callable[[Any], None] | None = None,
    stop: threading.Event | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Run a topology on Spark until its input ends, or until `stop` is set.

    Parameters
    ----------
    topology : Topology
    config : Config
        `application.id` and a home of topics are needed; `spark.*` goes to Spark, `spark.kstreams.*` is ours.
    once, until_end : bool
        Stop when everything that the topics hold now is processed; with `until_end`, close what is still open.
    on_progress : callable, optional
        Called after every step with `records_in`, `records_out`, `dropped`, `commits`, `lag`.
    stop : threading.Event, optional
        Ends a run that has no end.
    say : callable
        Gets a line for what takes seconds before the first row.

    Raises
    ------
    EngineUnavailableError
        When Java, PySpark or jars are missing.
    KStreamsError
        Whatever ended the run, as on the native engine.
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
    """Forget checkpoint, state and positions of an application: its next run processes everything again.

    The result tells what was deleted, or with `dry_run` what would be.
    """
    from kstreams.log import home_of
    from kstreams.runtime.spark.reset import forget, remains

    with driver_lock(config, shared=False), home_of(config).open(config) as log:
        return remains(config, log) if dry_run else forget(config, log)


def explain(topology: Topology, config: Config) -> list[object]:
    """The path that every operator takes on Spark, and why: named tuples; neither Spark nor topics are needed.

    What is not exact when input is cut into steps is said behind the reason. Raises TopologyError when a function holds
    what cannot be sent to workers.
    """
    from kstreams.kernel.timestamps import extractor_of
    from kstreams.runtime.spark.cluster.unshippable import require_shippable
    from kstreams.runtime.spark.relational.path_plan import needs_tasks, plan_of
    from kstreams.runtime.spark.settings import SparkSettings

    require_shippable(topology, config)
    decisions = plan_of(topology, SparkSettings.of(config).path, needs_tasks(config)).decisions
    differences = step_differences(topology, extractor_of(config["default.timestamp.extractor"]))
    return [
        decision._replace(why="; but ".join([decision.why, *filter(None, [differences.get(decision.operator)])]))
        for decision in decisions
    ]


def export_state(topology: Topology, config: Config, folder: Path) -> Bundle:
    """Write the state of an application as of its last step into a folder; raises StateError while it runs."""
    from kstreams.log import home_of
    from kstreams.runtime.spark.saved_state.bundles import write

    with driver_lock(config, shared=False), home_of(config).open(config) as log:
        return write(topology, config, log, folder)


def import_state(topology: Topology, config: Config, folder: Path, *, replace: bool = False) -> Bundle:
    """Let an application go on from a state that any engine has exported; `replace` forgets what it has."""
    from kstreams.log import home_of
    from kstreams.runtime.spark.saved_state.bundles import take
    from kstreams.state.bundle import Bundle

    bundle = Bundle(folder)
    with driver_lock(config, shared=False), home_of(config).open(config) as log:
        take(topology, config, log, bundle, replace=replace)
    return bundle


def sql(topology: Topology, config: Config, query: str, as_of_ms: int | None, step: int | None) -> pa.Table:
    """What the stores answered after a step (by default the last); the application may run."""
    from kstreams.runtime.spark.saved_state.step_stores import StepStores

    with StepStores(topology, config, step) as stores:
        return stores.sql(query, as_of_ms)
