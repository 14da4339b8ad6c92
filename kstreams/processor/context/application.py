"""`Application`: the constants of an application that all its tasks share, with its `TaskSettings`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kstreams.config import Config, MemoryShares
from kstreams.kernel.clock import Clock
from kstreams.processor.context.failures import ErrorPolicies


@dataclass(frozen=True, slots=True, eq=False)
class TaskSettings:
    """The settings of an application, read once for all its tasks.

    Parameters
    ----------
    caching : bool
        True if the record cache is on.
    uncommitted_bytes : int
        The bytes that the tasks of one thread may hold until they commit.
    errors : ErrorPolicies
    timestamp_extractor
        A function, a class or a name, for sources that have no extractor of their own.
    idle_timeout_ms : int
        The time after which a source without an own setting is idle; negative: never.
    most_ahead_ms : int
        The time by which records may be ahead of the clock; negative: any distance.
    columns_min_rows : int
        The least rows of a batch that is processed in columns.
    log_summary_interval_ms : int
        Least time between two log lines that count dropped records.
    counts_forwarded : bool
        True if operators count the records that they forward.
    trace_records : str
        `none`, `sampled` or `all`: which records are traced through the operators.
    async_concurrency, async_timeout_ms : int
        The most concurrent calls of an async function, and the timeout of each, for operators without own settings.
    app_configs : mapping of str to object
        All settings, for processors that read them.
    explicit : mapping of str to object
        The settings that are set explicitly.

    Examples
    --------
    >>> TaskSettings.of(Config.of({"statestore.cache.max.bytes": 0})).caching
    False
    """

    caching: bool
    uncommitted_bytes: int
    errors: ErrorPolicies
    timestamp_extractor: object
    idle_timeout_ms: int
    most_ahead_ms: int
    columns_min_rows: int
    log_summary_interval_ms: int
    counts_forwarded: bool
    trace_records: str
    async_concurrency: int
    async_timeout_ms: int
    app_configs: Mapping[str, object]
    explicit: Mapping[str, object]

    @classmethod
    def of(cls, config: Config) -> TaskSettings:
        """Return the settings of a configuration. Raises ConfigError if two settings contradict each other."""
        return cls(
            caching=config.caches,
            uncommitted_bytes=MemoryShares.of(config).uncommitted // int(config["num.stream.threads"]),
            errors=ErrorPolicies.of(config),
            timestamp_extractor=config["default.timestamp.extractor"],
            idle_timeout_ms=config["idle.timeout.ms"],
            most_ahead_ms=config["max.timestamp.ahead"],
            columns_min_rows=config["columns.min.rows"],
            log_summary_interval_ms=config["log.summary.interval.ms"],
            counts_forwarded=config["metrics.recording.level"] == "DEBUG",
            trace_records=config["trace.records"],
            async_concurrency=config["async.concurrency"],
            async_timeout_ms=config["async.timeout.ms"],
            app_configs=dict(config),
            explicit=config.explicit,
        )

    def app_configs_with_prefix(self, prefix: str) -> dict[str, object]:
        """Return the explicit settings whose key begins with `prefix`, by the key without the prefix."""
        return {key.removeprefix(prefix): value for key, value in self.explicit.items() if key.startswith(prefix)}


@dataclass(frozen=True, slots=True, eq=False)
class Application:
    """The values of an application that its tasks read.

    Parameters
    ----------
    id : str
        `application.id`, which processors may ask for.
    settings : TaskSettings
    clock : Clock
        Wall-clock time for punctuators and processors.
    topic_names : mapping of str to str
        Real names of topics whose name in the topology differs: internal ones lack the application's id there.

    Examples
    --------
    >>> from kstreams.kernel.clock import ManualClock
    >>> Application.of(Config.of({"application.id": "flights"}), ManualClock()).id
    'flights'
    """

    id: str
    settings: TaskSettings
    clock: Clock
    topic_names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, config: Config, clock: Clock, topic_names: Mapping[str, str] | None = None) -> Application:
        """Return the constants of a configuration."""
        return cls(config.application_id, TaskSettings.of(config), clock, topic_names or {})
