"""Every error that kstreams raises: a sentence that names what to do, never a bare code."""

from __future__ import annotations

from pathlib import Path

from kstreams.kernel.advice import spoken
from kstreams.kernel.source_line import operator_at
from kstreams.own_files import require_own

require_own()  # nearly everything imports the errors


class KStreamsError(Exception):
    """Base of all errors that kstreams raises on purpose."""


class ConfigError(KStreamsError):
    """A configuration key or value that cannot be used."""


class SerdeError(KStreamsError):
    """A value that does not encode or bytes that do not decode."""


class RegistryError(KStreamsError):
    """A schema registry that does not answer, or refuses what it is asked."""


class RegistryUnavailableError(RegistryError):
    """A schema registry that does not answer now, or says that it cannot: ask again."""


class SchemaNotFoundError(RegistryError):
    """A subject, version or id that the schema registry does not have."""


class IncompatibleSchemaError(RegistryError):
    """A schema that the rule of compatibility of its subject forbids."""


class TopologyError(KStreamsError):
    """A topology that cannot be built: wrong names, unknown types, topics that do not fit together."""


class LogError(KStreamsError):
    """A topic log that cannot be read or written."""


class UnknownTopicError(LogError):
    """A topic that does not exist where it is looked for."""


class TopicExistsError(LogError):
    """A topic that is to be created is there already."""


class CorruptLogError(LogError):
    """Bytes of a log that fail their checksum or their declared size; names the file and the offset."""


class LogFormatError(LogError):
    """A log directory written by another, usually newer, format version."""


class TooManyFilesError(LogError):
    """All files that this process may have open (`ulimit -n`) are open."""


class BufferFullError(LogError):
    """The producer's buffer stayed full for longer than `max.block.ms`."""


class FencedError(LogError):
    """A producer that others have replaced: its transactional id or `group.instance.id` was taken, or its member is out
    of the group."""


class CommitFailedError(LogError):
    """A commit by a consumer that is no member of its group's present generation: others may have its partitions."""


class RebalanceInProgressError(LogError):
    """A commit while the group divides its partitions anew: to be tried again after the next poll."""


class UncertainCommitError(LogError):
    """A transaction of which nobody knows whether it counts: its producer can do nothing more."""


class StateError(KStreamsError):
    """A state store that cannot be opened, read, written or restored."""


class StoreNotAvailableError(StateError):
    """A store that cannot be asked now: the application starts, moves its tasks or has ended. Ask again."""


class CorruptStateError(StateError):
    """Files of state stores that are damaged or missing; the task that owns them restores them from changelogs.

    Parameters
    ----------
    message : str
    folder : Path or None
        Holds the damaged files and nothing else; None when another process found them.
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
        Where the input record came from: `topic-partition@offset`.
    cause : BaseException
        What the function raised.
    """

    def __init__(self, operator: str, declared_at: str | None, record: str, cause: BaseException) -> None:
        self.operator = operator
        self.declared_at = declared_at
        self.record = record
        self.cause = cause
        named = operator_at(operator, declared_at)
        super().__init__(f"{named} failed on record {record}: {type(cause).__name__}: {spoken(cause)}")


class UnsupportedError(KStreamsError):
    """An operator that the chosen engine declares it cannot run; carries the declared reason."""


class EngineUnavailableError(KStreamsError):
    """An engine whose parts are missing on this machine: Java, PySpark, connector jars."""
