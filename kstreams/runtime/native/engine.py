"""The native engine for `kstreams.app`: run in the foreground, reset, explain, state and SQL."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from kstreams.config import Config
from kstreams.errors import ConfigError, StateError
from kstreams.kernel.clock import SystemClock
from kstreams.log import home_of
from kstreams.os.garbage_collection import infrequent_garbage_collection
from kstreams.processor.task.columns.plan import ColumnPlan, plan_regions
from kstreams.processor.topology.nodes import SubTopology, parents_of
from kstreams.processor.topology.topology import Topology, bound_while
from kstreams.runtime.connectors import ApplicationConnectors, guarantees
from kstreams.runtime.deletions import Deletion
from kstreams.runtime.native.bounded_run import RunEnd
from kstreams.runtime.native.client import Client
from kstreams.runtime.native.group.ungrouped_commits import require_stopped
from kstreams.runtime.native.local_application import LocalApplication
from kstreams.runtime.native.progress import Progress
from kstreams.runtime.native.state.bundles import StoppedApplication
from kstreams.runtime.native.state.deletions import forget, remains
from kstreams.runtime.native.state.locks import lock_alone
from kstreams.runtime.native.state.stopped_stores import DeclaredStores, StoppedStores
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.state.bundle import Bundle, require_free
from kstreams.state.tables.sql import answer


class Explanation(NamedTuple):
    """The path of an operator (`columns` or `records`) and the reason, or the guarantee of a `connector`."""

    operator: str
    path: str
    why: str
    declared_at: str | None


def explain(topology: Topology, config: Config) -> list[Explanation]:
    """Return how the native engine runs each operator of a topology, in the order of its sub-topologies."""
    operators = [row for sub in topology.sub_topologies for row in _explain(sub, config.caches)]
    connectors = (Explanation(name, "connector", why, declared_at) for name, why, declared_at in guarantees(topology))
    return [*operators, *connectors]


def _explain(sub: SubTopology, caching: bool) -> list[Explanation]:
    reasons: dict[str, tuple[str, str]] = {}
    for source, planned in plan_regions(sub, caching=caching).items():
        if isinstance(planned, ColumnPlan):
            _explain_region(sub, planned, reasons)
        else:
            reasons |= dict.fromkeys(_with_downstream(sub, {source}), ("records", planned))
    return [Explanation(node.name, *reasons[node.name], node.declared_at) for node in sub.nodes]


def _explain_region(sub: SubTopology, plan: ColumnPlan, reasons: dict[str, tuple[str, str]]) -> None:
    for node in _with_downstream(sub, {plan.source.name}):
        reasons.setdefault(node, ("columns", "made of expressions"))
    for target in plan.targets:
        end = target.node.name
        downstream = _with_downstream(sub, {end}) - {end}
        reasons |= dict.fromkeys(downstream, ("records", f"behind {end}, where columns end"))
        if target.leaves_since is not None:
            reasons[end] = ("records", target.leaves_since)


def _with_downstream(sub: SubTopology, starts: set[str]) -> set[str]:
    """Return these nodes and all nodes downstream. The nodes of a sub-topology are in topological order."""
    names = set(starts)
    for node in sub.nodes:
        if any(parent in names for parent in parents_of(node)):
            names.add(node.name)
    return names


__all__ = ["connectors_of", "explain", "export_state", "import_state", "reset", "run", "sql"]

logger = logging.getLogger(__name__)

_STOP_S = 4.5  # a stop that takes longer is logged
_TICK_S = 0.1
_TICKS_PER_REPORT = 10


def run(
    topology: Topology,
    config: Config,
    *,
    once: bool = False,
    until_end: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
    around: Callable[[KafkaStreams], AbstractContextManager[None]] | None = None,
) -> None:
    """Run until `stop` is set or the input ends. Raises the error that ended the run.

    During the run, Python collects garbage less often. A program with its own `KafkaStreams` keeps its settings.
    The context manager of `around`, such as a query server, is entered before the start and left after the end.
    """
    stop = stop or threading.Event()
    streams = KafkaStreams(topology, config)
    with nullcontext() if around is None else around(streams):
        _run_to_end(streams, config, stop, on_progress, once=once, until_end=until_end)


def _run_to_end(
    streams: KafkaStreams,
    config: Config,
    stop: threading.Event,
    on_progress: Callable[[Progress], None] | None,
    *,
    once: bool,
    until_end: bool,
) -> None:
    with infrequent_garbage_collection():
        streams.start(once=once, until_end=until_end)
        for tick in itertools.count(1):
            if stop.is_set() or streams.wait(_TICK_S):
                break
            if on_progress is not None and tick % _TICKS_PER_REPORT == 0:
                on_progress(streams.progress())
    if not streams.close(_STOP_S):
        logger.warning(
            "still stopping: operators finish their work, which is then committed; a second Ctrl-C or SIGTERM ends at "
            "once, and the next start processes the records since the last commit again"
        )
        if not streams.close(config["shutdown.timeout.ms"] / 1000 - _STOP_S):
            raise StateError(
                f"{config.application_id} did not stop within {config['shutdown.timeout.ms'] / 1000:g} s "
                f"(shutdown.timeout.ms): {streams.current_operators()}. It ends now, and the next start processes the "
                "records since the last commit again."
            )
    streams.wait(0)
    if on_progress is not None:
        on_progress(streams.progress())


def reset(topology: Topology, config: Config, *, dry_run: bool = False) -> list[Deletion]:
    """Delete the application's internal topics, committed offsets and state. Raises StateError while it runs.

    Returns the deletions, or with `dry_run` those that would be made.
    """
    folder = lock_alone(config)
    try:
        with home_of(config).open(config) as log, log.admin() as admin:
            require_stopped(admin, config.application_id)
            if dry_run:
                return remains(topology, config, admin)
            deleted = forget(topology, config, admin)
    finally:
        folder.release()
    logger.info("%s was reset", config.application_id)
    return deleted


def connectors_of(topology: Topology, config: Config) -> ApplicationConnectors:
    """Return the sources and sinks with their groups and topics."""
    name = config.application_id
    return ApplicationConnectors(topology.with_connector_topics(name), name)


def export_state(topology: Topology, config: Config, folder: Path) -> Bundle:
    """Write the state of a stopped application into a folder. Raises StateError while it runs.

    Records in repartition topics are processed first. Each run takes them through one topic of the user's.
    """
    require_free(folder)
    for _ in topology.sub_topologies:
        with StoppedApplication(topology, config) as application:
            topics = application.waiting()
            if not topics:
                return application.write(folder)
        logger.info("records wait in %s: they are processed first", ", ".join(map(str, topics)))
        _settle(topology, config)
    with StoppedApplication(topology, config) as application:
        return application.write(folder)


def import_state(topology: Topology, config: Config, folder: Path, *, replace: bool = False) -> Bundle:
    """Import a state that any engine has exported. `replace` deletes the present state first."""
    bundle = Bundle(folder)
    with StoppedApplication(topology, config) as application:
        application.take(bundle, replace=replace)
    return bundle


def sql(topology: Topology, config: Config, query: str, as_of_ms: int | None, step: int | None) -> pa.Table:
    """Return the answer to a SQL query of the stores of a stopped application. Raises StateError while it runs."""
    if step is not None:
        raise ConfigError("steps are those of Spark: leave --step out, or add --engine spark")
    with bound_while(topology, config) as bound, StoppedStores(DeclaredStores(bound), config) as stores:
        return answer(query, bound.stores, lambda name: stores.store(name).to_arrow(as_of_ms))


def _settle(topology: Topology, config: Config) -> None:
    """Process the records that follow from processed input, but no further input."""
    application = LocalApplication(topology, config)
    Client(application, SystemClock(), None, lambda progress: None).open(RunEnd.SETTLED).start()
    application.lifecycle.wait_for_end(None)
    if error := application.error or application.lifecycle.failure:
        raise error
