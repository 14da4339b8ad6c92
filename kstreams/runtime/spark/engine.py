"""What `kstreams run`, `explain` and `reset` call. Nothing of Spark is imported before it is asked for."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kstreams.clock import SystemClock
from kstreams.config import Config

if TYPE_CHECKING:
    from kstreams.processor.topology.topology import Topology

__all__ = ["explain", "reset", "run"]


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
    from kstreams.runtime.spark.cluster.session import spark_session
    from kstreams.runtime.spark.settings import SparkSettings

    session = spark_session(SparkSettings.of(config), say)
    from kstreams.log import home_of
    from kstreams.runtime.spark.runner import SparkRunner

    with home_of(config).open(config) as log:
        runner = SparkRunner(topology, config, session, log, SystemClock(), on_progress)
        runner.run(once=once, until_end=until_end, stop=stop)


def reset(topology: Topology, config: Config) -> None:
    """Forget checkpoint, state and positions of an application: its next run processes everything again."""
    from kstreams.log import home_of
    from kstreams.runtime.spark.settings import SparkSettings
    from kstreams.runtime.spark.storage.opening import open_storage

    settings = SparkSettings.of(config)
    open_storage(settings.checkpoint_of(config.application_id), settings.conf).clear()
    with home_of(config).open() as log, log.admin() as admin:
        base = f"{config.application_id}-spark"
        for group in admin.groups():
            if group == base or re.fullmatch(rf"{re.escape(base)}-\d+", group):  # one for each windowed query
                admin.delete_group(group)


def explain(topology: Topology, config: Config) -> list[Any]:
    """The path that every operator takes on Spark, and why: named tuples; neither Spark nor topics are needed.

    What is not exact when input is cut into steps is said behind the reason.
    """
    from kstreams.runtime.spark.relational.path_plan import needs_tasks, plan_of
    from kstreams.runtime.spark.settings import SparkSettings
    from kstreams.runtime.spark.step_differences import step_differences
    from kstreams.timestamps import extractor_of

    decisions = plan_of(topology, SparkSettings.of(config).path, needs_tasks(config)).decisions
    said = step_differences(topology, extractor_of(config["default.timestamp.extractor"]))
    return [
        each._replace(why="; but ".join([each.why, *filter(None, [said.get(each.operator)])])) for each in decisions
    ]
