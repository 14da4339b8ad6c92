"""`SparkSettings`: the settings of the Spark engine, and the settings that are passed to Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import Literal, NamedTuple, cast

from kstreams.config import Config
from kstreams.errors import ConfigError
from kstreams.kernel.advice import nearest_name
from kstreams.kernel.timestamps import FailOnInvalidTimestamp, extractor_of
from kstreams.processor.api.error_handlers import KINDS
from kstreams.runtime.spark.storage.location import below, local_path, location_of

ConnectorPlace = Literal["driver", "executors"]
PathChoice = Literal["auto", "task", "relational"]
OWN = "spark.kstreams."
PATH = f"{OWN}path"
CONNECTORS = f"{OWN}connectors"
ACCEPT = f"{OWN}accept"
_DEFAULTS = {
    "checkpoint": ".kstreams/spark",
    "delta": ".kstreams/delta",
    "delta.merge": "",
    "delta.partition.by": "",
    "prefix": "spark-",
    "path": "auto",
    "accept": "",
    "connectors": "driver",
    "max.records": "1000000",
    "snapshot.every": "20",
    "transaction.timeout.ms": "3600000",
    "state.dir": "local",
}


_DELTA_PARTITION_COLUMNS = ("date", "partition")


class DeltaSettings(NamedTuple):
    """The location and the layout of Delta tables.

    Parameters
    ----------
    folder : str
        `spark.kstreams.delta`: an absolute path or a URI.
    merged : frozenset of str
        `spark.kstreams.delta.merge`: topics whose tables hold the last value of each key.
    partition_by : tuple of str
        `spark.kstreams.delta.partition.by`: `date` (the day of `timestamp`), `partition`, or both.
    """

    folder: str
    merged: frozenset[str] = frozenset()
    partition_by: tuple[str, ...] = ()


ACCEPTABLE = ("decoding", "headers", "late", "order", "repeats", "table", "tombstones", "updates")
"""The names of differences that `spark.kstreams.accept` takes. Each rule in `code/` says which of them it has."""


class PathSettings(NamedTuple):
    """The paths that the user chose.

    Parameters
    ----------
    application : {"auto", "task", "relational"}
        `spark.kstreams.path`: `auto` uses the relational path where its differences are accepted, `relational` also
        where they are not, and `task` never uses it.
    operators : mapping of str to {"task", "relational"}
        `spark.kstreams.path.<operator>`, by the name of the operator; overrides the choice for the application.
    accepted : frozenset of str
        `spark.kstreams.accept`: the names of the differences that `auto` may take.
    skips_unreadable : bool
        True if `deserialization.exception.handler` is `continue`: a query must be able to leave out records.
    """

    application: PathChoice = "auto"
    operators: Mapping[str, PathChoice] = {}
    accepted: frozenset[str] = frozenset()
    skips_unreadable: bool = False


AUTO = PathSettings()
"""The choice of the defaults."""


class ConnectorSettings(NamedTuple):
    """The places that the user chose for the tasks of connectors.

    Parameters
    ----------
    application : {"driver", "executors"}
        `spark.kstreams.connectors`.
    connectors : mapping of str to {"driver", "executors"}
        `spark.kstreams.connectors.<name>`, by the name of the connector.
    """

    application: ConnectorPlace = "driver"
    connectors: Mapping[str, ConnectorPlace] = {}


IN_DRIVER = ConnectorSettings()
"""The places of the defaults."""


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """The settings under `spark.`.

    Parameters
    ----------
    checkpoint : str
        `spark.kstreams.checkpoint`: the absolute path or URI of checkpoints and versioned state, with one folder per
        application. On a cluster, driver and executors must share this location.
    delta : DeltaSettings or None
        The Delta tables that also hold the results; None for `spark.kstreams.delta=none`.
    prefix : str
        `spark.kstreams.prefix`: the prefix of the names of result topics.
    path : PathSettings
    connectors : ConnectorSettings
    max_records : int
        `spark.kstreams.max.records`: the maximum number of rows that a step reads.
    snapshot_every : int
        `spark.kstreams.snapshot.every`: the number of steps after which a worker checks whether a snapshot of a task's
        state is due. It is due if the changes since the last snapshot are larger than that snapshot.
    transaction_timeout_ms : int
        `spark.kstreams.transaction.timeout.ms`: the longest time of a step from its first row of output to its commit.
    state_dir : str or None
        `spark.kstreams.state.dir`: the folder on each machine in which workers keep the stores of tasks between steps.
        None (`local`): among Spark's local files, which are deleted with the executor.
    dead_letter_topic : str or None
        The topic, without the prefix, to which queries write records that they cannot decode; None if they write none.
    conf : mapping
        All other `spark.*` keys, which are passed to Spark unchanged.
    may_read_kafka : bool
        True if Spark's own source may read topics: they are in Kafka, and `spark.kstreams.path` is not `task`.

    Examples
    --------
    >>> SparkSettings.of({"spark.kstreams.prefix": "s-", "spark.driver.memory": "1g"}).conf
    {'spark.driver.memory': '1g'}
    """

    checkpoint: str = _DEFAULTS["checkpoint"]
    delta: DeltaSettings | None = field(default_factory=lambda: DeltaSettings(_DEFAULTS["delta"]))
    prefix: str = _DEFAULTS["prefix"]
    path: PathSettings = AUTO
    connectors: ConnectorSettings = IN_DRIVER
    max_records: int = int(_DEFAULTS["max.records"])
    snapshot_every: int = int(_DEFAULTS["snapshot.every"])
    transaction_timeout_ms: int = int(_DEFAULTS["transaction.timeout.ms"])
    state_dir: str | None = None
    dead_letter_topic: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    may_read_kafka: bool = False

    @classmethod
    def of(cls, config: Mapping[str, object]) -> SparkSettings:
        """Read the `spark.*` keys of a configuration. Raise ConfigError for a bad or unknown `spark.kstreams.*` key."""
        spark_settings = {key: str(value) for key, value in config.items() if key.startswith("spark.")}
        operators = _taken_under(PATH, spark_settings)
        connectors = _taken_under(CONNECTORS, spark_settings)
        values = _DEFAULTS | {
            key.removeprefix(OWN): spark_settings.pop(key) for key in list(spark_settings) if key.startswith(OWN)
        }
        for key in values.keys() - _DEFAULTS.keys():
            nearest = nearest_name(key, _DEFAULTS, cutoff=0.0)
            raise ConfigError(f"unknown configuration key {OWN}{key}; the nearest is {OWN}{nearest}")
        return cls(
            checkpoint=location_of(values["checkpoint"]),
            delta=None if values["delta"] == "none" else _delta(values),
            prefix=values["prefix"],
            path=_paths(values["path"], operators)._replace(
                accepted=_accepted(values["accept"]), skips_unreadable=_skips_unreadable(config)
            ),
            connectors=_places(values["connectors"], connectors),
            max_records=_positive("max.records", values["max.records"]),
            snapshot_every=_positive("snapshot.every", values["snapshot.every"]),
            transaction_timeout_ms=_positive("transaction.timeout.ms", values["transaction.timeout.ms"]),
            state_dir=None if values["state.dir"] == "local" else str(local_path(location_of(values["state.dir"]))),
            dead_letter_topic=_dead_letter_topic(config),
            conf=spark_settings,
            may_read_kafka=config.get("bootstrap.servers") is not None and values["path"] != "task",
        )

    def checkpoint_of(self, application_id: str) -> str:
        """Return the location of an application's checkpoint."""
        return below(self.checkpoint, application_id)


def _taken_under(key: str, settings: dict[str, str]) -> dict[str, str]:
    """Remove the settings `<key>.<name>`, and return them by name."""
    prefix = f"{key}."
    return {name.removeprefix(prefix): settings.pop(name) for name in list(settings) if name.startswith(prefix)}


def _delta(values: Mapping[str, str]) -> DeltaSettings:
    partition_by = _names(values["delta.partition.by"])
    for name in partition_by:
        if name not in _DELTA_PARTITION_COLUMNS:
            columns = " or ".join(_DELTA_PARTITION_COLUMNS)
            raise ConfigError(f"{OWN}delta.partition.by cannot be {name!r}: say {columns}")
    return DeltaSettings(location_of(values["delta"]), frozenset(_names(values["delta.merge"])), partition_by)


def _names(comma_separated: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in comma_separated.split(",") if name.strip())


def _paths(application: str, operators: Mapping[str, str]) -> PathSettings:
    of_operators = {name: _path(f"{PATH}.{name}", path, "task", "relational") for name, path in operators.items()}
    return PathSettings(_path(PATH, application, "auto", "task", "relational"), of_operators)


def _accepted(comma_separated: str) -> frozenset[str]:
    for name in _names(comma_separated):
        if name not in ACCEPTABLE:
            raise ConfigError(f"{ACCEPT} cannot name {name!r}: give some of {', '.join(ACCEPTABLE)}")
    return frozenset(_names(comma_separated))


def _path(key: str, value: str, *choices: str) -> PathChoice:
    return cast(PathChoice, _one_of(key, value, *choices))


def _places(application: str, connectors: Mapping[str, str]) -> ConnectorSettings:
    of_connectors = {name: _place(f"{CONNECTORS}.{name}", place) for name, place in connectors.items()}
    return ConnectorSettings(_place(CONNECTORS, application), of_connectors)


def _place(key: str, value: str) -> ConnectorPlace:
    return cast(ConnectorPlace, _one_of(key, value, "driver", "executors"))


def _one_of(key: str, value: str, *choices: str) -> str:
    if value not in choices:
        raise ConfigError(f"{key} cannot be {value!r}: say {', '.join(choices[:-1])} or {choices[-1]}")
    return value


def _positive(key: str, value: str) -> int:
    if not value.isdecimal() or int(value) == 0:
        raise ConfigError(f"{OWN}{key} cannot be {value!r}: give a whole number above 0")
    return int(value)


_DESERIALIZATION = "deserialization.exception.handler"
_LETTERS = "errors.dead.letter.queue.topic.name"
_DROPPED = "errors.dead.letter.queue.dropped.records"
_NOT_IN_JAVA = "enable.ssl.certificate.verification"
"""A setting of librdkafka that Java's client, by which Spark reads, does not have."""


def _skips_unreadable(config: Mapping[str, object]) -> bool:
    return config.get(_DESERIALIZATION) == "continue"


def _dead_letter_topic(config: Mapping[str, object]) -> str | None:
    """Return the topic of dead letters, if records that cannot be decoded are skipped."""
    topic = config.get(_LETTERS)
    return str(topic) if topic is not None and _skips_unreadable(config) else None


def needs_tasks(config: Config) -> str | None:
    """Return a setting that relational operators cannot follow, so that the application runs as tasks; or None.

    Queries skip records that cannot be decoded, with dead letters. Where such a record ends the run, they write none,
    since it would be rolled back with its transaction.
    """
    names = [f"{kind}.exception.handler" for kind in KINDS]
    configured = [
        name
        for name in names
        if config[name] not in ("fail", "retry") and (name, config[name]) != (_DESERIALIZATION, "continue")
    ]
    is_at_least_once = config.explicit.get("processing.guarantee") == "at_least_once"
    if config[_LETTERS] is not None and is_at_least_once and config[_DESERIALIZATION] == "fail":
        configured.append(_LETTERS)
    if config[_DROPPED]:
        configured.append(_DROPPED)
    if str(config.get(_NOT_IN_JAVA, "true")).lower() == "false":
        configured.append(_NOT_IN_JAVA)
    if type(extractor_of(config["default.timestamp.extractor"])) not in (NoneType, FailOnInvalidTimestamp):
        configured.append("default.timestamp.extractor")
    if config["max.timestamp.ahead"] >= 0:
        configured.append("max.timestamp.ahead")
    return configured[0] if configured else None
