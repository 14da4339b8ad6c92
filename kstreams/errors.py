"""The errors of kstreams; their messages name what happened and what to do."""

from __future__ import annotations

from pathlib import Path

from kstreams.kernel.advice import spoken
from kstreams.kernel.source_line import operator_at
from kstreams.own_files import require_own

require_own()  # nearly everything imports the errors


class KStreamsError(Exception):
    """The base class of the errors of kstreams."""


class ConfigError(KStreamsError):
    """A configuration key or value that cannot be used."""


class SerdeError(KStreamsError):
    """A value that does not encode or bytes that do not decode."""


class RegistryError(KStreamsError):
    """A schema registry that does not answer, or refuses a request."""


class RegistryUnavailableError(RegistryError):
    """A schema registry that is temporarily unavailable; retry the request."""


class SchemaNotFoundError(RegistryError):
    """A subject, version or id that the schema registry does not have."""


class IncompatibleSchemaError(RegistryError):
    """A schema that violates the compatibility rule of its subject."""


class TopologyError(KStreamsError):
    """A topology that cannot be built: wrong names, unknown types, topics that do not fit together."""


class LogError(KStreamsError):
    """A topic log that cannot be read or written."""


class UnknownTopicError(LogError):
    """A topic that does not exist."""


class TopicExistsError(LogError):
    """A topic that already exists, and was to be created."""


class CorruptLogError(LogError):
    """Bytes of a log that fail their checksum or their declared size; names the file and the offset."""


class LogFormatError(LogError):
    """A log directory written by another, usually newer, format version."""


class TooManyFilesError(LogError):
    """The process has reached its limit of open files (`ulimit -n`)."""


class BufferFullError(LogError):
    """The producer's buffer stayed full for longer than `max.block.ms`."""


class FencedError(LogError):
    """A fenced producer: another one has its transactional id or `group.instance.id`, or its member left the group."""


class CommitFailedError(LogError):
    """A commit of a consumer that is not in the current generation of its group: others may own its partitions."""


class RebalanceInProgressError(LogError):
    """A commit during a rebalance; retry it after the next poll."""


class UncertainCommitError(LogError):
    """A transaction with an unknown outcome; its producer cannot be used any more."""


class StateError(KStreamsError):
    """A state store that cannot be opened, read, written or restored."""


class StoreNotAvailableError(StateError):
    """A store that is not available now: the application starts, rebalances or has ended. Retry the query."""


class CorruptStateError(StateError):
    """Files of state stores that are damaged or missing; the task that owns them restores them from changelogs.

    Parameters
    ----------
    message : str
    folder : Path or None
        The folder with only the damaged files; None if another process detected them.
    """

    def __init__(self, message: str, folder: Path | None = None) -> None:
        super().__init__(message)
        self.folder = folder


class ProcessingError(KStreamsError):
    """A function or processor that raised while it handled a record.

    Parameters
    ----------
    operator : str
        Name of the operator, as `describe()` prints it.
    declared_at : str or None
        `file:line` of the user's code that declared the operator.
    record : str
        Position of the input record: `topic-partition@offset`.
    cause : BaseException
        The error that the function raised.
    """

    def __init__(self, operator: str, declared_at: str | None, record: str, cause: BaseException) -> None:
        self.operator = operator
        self.declared_at = declared_at
        self.record = record
        self.cause = cause
        named = operator_at(operator, declared_at)
        super().__init__(f"{named} failed on record {record}: {type(cause).__name__}: {spoken(cause)}")


class UnsupportedError(KStreamsError):
    """An operator that the engine cannot run, with the reason."""


class ConnectorError(KStreamsError):
    """A source or sink was declared wrongly, or the other system has refused it."""


class ConnectorUnavailableError(ConnectorError):
    """The system of a source or sink does not answer. It is tried again."""


class EngineUnavailableError(KStreamsError):
    """An engine with missing dependencies: Java, PySpark, connector jars."""
