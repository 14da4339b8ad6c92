"""`OperatorContext`: the interface of a task to one operator, and the binding of the operator to the task.

`bind_operator` creates the closure of an operator in one task, by the type of the operator. Closures are created from
the sinks upwards: each gets the closures of its children. A record is three positional arguments; the `TaskContext`,
which all operators of a task share, holds the rest of the input record. `Registrations` are the callbacks and objects
that operators register when they are bound.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import singledispatch
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from kstreams.errors import StateError, TopologyError
from kstreams.os.private import private_folder
from kstreams.processor.api.metrics import Sensor
from kstreams.processor.api.punctuation import Cancellable, PunctuationType
from kstreams.processor.context.application import Application
from kstreams.processor.context.chain import Link, Statement, StatementOperator, passing_on
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.delayed_results import DelayedResults
from kstreams.processor.context.failures import Failures
from kstreams.processor.context.forwarded import ForwardedCounts
from kstreams.processor.context.operator_code import OperatorCode
from kstreams.processor.context.task_punctuations import TaskPunctuations, Timer
from kstreams.processor.topology.operator import Forward, Operator
from kstreams.state.codecs import KeyCodec
from kstreams.state.kinds.live_store import LiveStore
from kstreams.state.kinds.measured_store import MeasuredStore
from kstreams.state.store_builder import Written

logger = logging.getLogger("kstreams.processor")

H = TypeVar("H", bound="ColumnHandle")
S = TypeVar("S")
T = TypeVar("T")
_ROWS_PER_SEND = 1_000  # rows between two checks whether the output is large enough to be sent


class CommitRequest:
    """The request of a task's processors for a commit; it holds until the next flush.

    Examples
    --------
    >>> request = CommitRequest()
    >>> request.make()
    >>> request.is_made
    True
    """

    __slots__ = ("is_made",)

    def __init__(self) -> None:
        self.is_made = False

    def make(self) -> None:
        """Ask for a commit soon."""
        self.is_made = True

    def clear(self) -> None:
        """Clear the request, as the commit follows."""
        self.is_made = False


@dataclass(frozen=True, slots=True, eq=False)
class TaskContext:
    """The parts of a task that its operators use.

    Parameters
    ----------
    application : Application
    task_id : str
    partition : int
    stores, global_stores : mapping of str to StateStore
        Stores by name.
    state_dir : Path or None
        The task's folder on the local disk.
    current : CurrentRecord
    failures : Failures
    punctuations : TaskPunctuations
    send_if_many : callable
        Sends the output if there is enough of it.
    """

    application: Application
    task_id: str
    partition: int
    stores: Mapping[str, object]
    global_stores: Mapping[str, object]
    state_dir: Path | None
    current: CurrentRecord
    failures: Failures
    punctuations: TaskPunctuations
    send_if_many: Callable[[], None]
    sensors: dict[tuple[str, str], Sensor] = field(default_factory=dict)
    """The sensors of processors, by node and name."""
    commit_request: CommitRequest = field(default_factory=CommitRequest)
    forwarded: ForwardedCounts | None = None
    """The counters of forwarded records; None if the settings do not ask for them."""

    def sending_meanwhile(self, rows: Iterable[T]) -> Iterator[T]:
        """Yield the rows that one record or a flush releases, possibly very many; send output as it accumulates."""
        for number, row in enumerate(rows, 1):
            yield row
            if not number % _ROWS_PER_SEND:
                self.send_if_many()

    def state_folder(self) -> Path:
        """Return the task's folder on the local disk; the first call creates it."""
        if self.state_dir is None:
            raise StateError(f"Task {self.task_id} keeps nothing on disk, so that it has no folder for processors.")
        private_folder(self.state_dir)
        return self.state_dir

    def drop(self, node: str, reason: str, count: int = 1) -> None:
        """Count and log records that a node drops, the current one last; write a dead letter if the settings ask for
        it.
        """
        if self.failures.keeps_dropped:
            self.failures.dropped(self.current.error_context(node), reason, count)
        else:
            self.failures.drops.add(node, reason, self.current.place, count)


class ColumnHandle:
    """The base of state that the closure of an operator and its columnar form share.

    This is the operator's store, its time, and how it emits.
    """

    __slots__ = ()


class ColumnHandles:
    """The handles of one task, by the name of the operator.

    Examples
    --------
    >>> class Sum(ColumnHandle):
    ...     total = 0
    >>> handles = ColumnHandles()
    >>> handles.add("SUM", Sum())
    >>> handles.of("SUM", Sum).total
    0
    """

    __slots__ = ("_by_node",)

    def __init__(self) -> None:
        self._by_node: dict[str, ColumnHandle] = {}

    def add(self, node: str, handle: ColumnHandle) -> None:
        """Add the handle of an operator."""
        self._by_node[node] = handle

    def of(self, node: str, kind: type[H]) -> H:
        """Return the handle of an operator. Raises TypeError if it is not of this kind."""
        handle = self._by_node[node]
        if not isinstance(handle, kind):
            raise TypeError(f"{node} shares a {type(handle).__name__} with its columns, not a {kind.__name__}")
        return handle


class Registrations:
    """The callbacks, metadata and shared objects of the operators of one task.

    Parameters
    ----------
    metadata : mapping of str to int
        The task metadata of the last commit.

    Attributes
    ----------
    at_flush, at_end_of_input, at_idle, at_close : list of (str, callable)
        Callbacks with the name of their operator, children before parents.
    held_back : dict of str to DelayedResults
        The records that operators hold back, by operator, children before parents.
    column_handles : ColumnHandles
    follows_stream_time : bool
        True if a processor may schedule punctuators of stream time, which are called between two records.
    waits : dict of str to callable
        The waits of operators with waiting records.
    """

    __slots__ = (
        "_bytes",
        "_metadata",
        "_read",
        "_shared",
        "at_close",
        "at_end_of_input",
        "at_flush",
        "at_idle",
        "column_handles",
        "follows_stream_time",
        "held_back",
        "waits",
    )

    def __init__(self, metadata: Mapping[str, int]) -> None:
        self._metadata = metadata
        self._read: dict[str, Callable[[], int]] = {}
        self._bytes: list[Callable[[], int]] = []
        self._shared: dict[str, Any] = {}
        self.column_handles = ColumnHandles()
        self.follows_stream_time = False
        self.waits: dict[str, Callable[[], Waits]] = {}
        self.held_back: dict[str, DelayedResults[object]] = {}
        self.at_flush: list[tuple[str, Callable[[], None]]] = []
        self.at_end_of_input: list[tuple[str, Callable[[], None]]] = []
        self.at_idle: list[tuple[str, Callable[[int], bool]]] = []
        self.at_close: list[tuple[str, Callable[[], None]]] = []

    def shared(self, name: str, make: Callable[[], S]) -> S:
        """Return an object that operators of one task share; the first call creates it."""
        if name not in self._shared:
            self._shared[name] = make()
        instance: S = self._shared[name]
        return instance

    def keep_in_metadata(self, key: str, read: Callable[[], int]) -> int:
        """Store a number in the task metadata; return its value at the last commit, -1 at first."""
        self._read[key] = read
        return self._metadata.get(key, -1)

    def metadata(self) -> dict[str, int]:
        """Return the present numbers of the operators for the task metadata."""
        return {key: read() for key, read in self._read.items()}

    def count_bytes(self, num_bytes: Callable[[], int]) -> None:
        """Register a function that returns the bytes an operator holds until the next commit."""
        self._bytes.append(num_bytes)

    def num_bytes(self) -> int:
        """Return the approximate memory of operators until the next commit."""
        return sum([num_bytes() for num_bytes in self._bytes])


class Waits(NamedTuple):
    """The records that wait in an operator for the wall clock.

    Parameters
    ----------
    records : int
    since_ms : int
        The wall-clock time since which the oldest one waits; 0 if no record waits.
    """

    records: int
    since_ms: int

    def oldest_ms(self, now_ms: int) -> int:
        """Return for how long the oldest record has waited, in milliseconds; 0 if no record waits."""
        return max(0, now_ms - self.since_ms) if self.records else 0


class CheckedStore:
    """A store whose puts fail at once if keys or values do not encode, so that a handler can decide.

    Without it, a store holds values of immutable types as objects and encodes them at the next commit, when the record
    that led to a value is no longer known. All other methods are those of the store.

    Parameters
    ----------
    store : LiveStore or MeasuredStore
        The store of keys and values.
    """

    has_plain_frames = False  # frames would bypass `put`

    def __init__(self, store: Any) -> None:
        self._store: Any = store
        self._key = store.builder.key
        self._value = store.builder.value
        for method, written in store.builder.kind.writes.items():
            if written is not None:
                setattr(self, method, self._checked(getattr(store, method), written))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put_all(self, entries: Iterable[tuple[object, object]]) -> None:
        """Put key-value pairs in order, each after a check."""
        for key, value in entries:
            self.put(key, value)

    def _checked(self, write: Callable[..., Any], written: Written) -> Callable[..., Any]:
        """Return a write method that first serializes its arguments; it raises SerdeError."""

        write_key, write_value = (_no_bytes if serde is None else serde.serialize for serde in (self._key, self._value))

        def check_and_write(*arguments: object) -> object:
            key, value = written(*arguments)
            if key is not None:
                write_key(key)
            if value is not None:
                write_value(value)
            return write(*arguments)

        return check_and_write


def _no_bytes(item: object) -> bytes:
    """Return no bytes: the check for a side whose serde is not known."""
    return b""


def checked(store: object) -> Any:
    """Return the store with checks, if it can have them; other kinds are written only by operators."""
    is_checked = isinstance(store, LiveStore | MeasuredStore) and any(store.builder.kind.writes.values())
    return CheckedStore(store) if is_checked else store


class OperatorContext:
    """The view that one operator has of its task.

    Parameters
    ----------
    node : str
        The name of the operator's node.
    task : TaskContext
        The context that all operators of the task share.
    children : mapping of str to Forward
        The closures of its children by name, in order of declaration.
    registrations : Registrations
        The registrations of the task: callbacks, metadata, shared objects.
    code : OperatorCode
        The code objects of the task's closures.
    connected : tuple of str
        The stores connected to the operator.
    """

    __slots__ = ("_code", "_registrations", "children", "connected", "current", "node", "task")

    def __init__(
        self,
        node: str,
        task: TaskContext,
        children: Mapping[str, Forward],
        registrations: Registrations,
        code: OperatorCode,
        connected: tuple[str, ...] = (),
    ) -> None:
        self.node = node
        self.task = task
        self.children = children
        self.connected = connected
        self.current: CurrentRecord = task.current
        self._registrations = registrations
        self._code = code

    # stores and shared objects

    @property
    def caching(self) -> bool:
        """True if the record cache is on (`statestore.cache.max.bytes` above 0)."""
        return self.task.application.settings.caching

    def state_store(self, name: str) -> Any:
        """Return the open store of this name: one of the task's, or a global one."""
        store = self.task.stores.get(name)
        if store is None:
            store = self.task.global_stores.get(name)
        if store is None:
            names = ", ".join(sorted([*self.task.stores, *self.task.global_stores])) or "none"
            raise TopologyError(
                f"{self.node} asks for the state store {name!r}, which task {self.task.task_id} does not have "
                f"(it has: {names}). Connect the store to the operator."
            )
        return checked(store) if self.task.failures.guards_processing else store

    def key_identity(self, store: str) -> Callable[[Any], Any] | None:
        """Return the function from a key to the object by which a store identifies the key; None if it is the key."""
        return KeyCodec(store, self.state_store(store).builder.key).live

    def shared(self, name: str, make: Callable[[], S]) -> S:
        """Return an object that operators of one task share; the first call creates it."""
        return self._registrations.shared(name, make)

    def share_with_columns(self, handle: ColumnHandle) -> None:
        """Give the columnar form of this operator its shared state."""
        self._registrations.column_handles.add(self.node, handle)

    # closures

    def chained(self, *statements: Statement) -> Forward:
        """Return statements of this operator as one closure."""
        return self._code.chained([Link(self.node, statement) for statement in statements])

    def guarded(self, closure: Forward) -> Forward:
        """Return the closure of this operator under its name, with errors passed to the handlers."""
        closure = self._code.named(self.node, closure)
        failures = self.task.failures
        if not failures.guards_processing:
            return closure
        return failures.guarded(self.node, closure, self.current.error_context)

    def with_children(self, children: Mapping[str, Forward]) -> OperatorContext:
        """Return the context of the same operator with other closures of its children."""
        return OperatorContext(self.node, self.task, children, self._registrations, self._code, self.connected)

    def sending_meanwhile(self, rows: Iterable[T]) -> Iterator[T]:
        """Yield the rows that one record or a flush releases; send output as it accumulates."""
        return self.task.sending_meanwhile(rows)

    def dropped(self, reason: str) -> None:
        """Count the current record as dropped by this operator, and log it."""
        self.task.drop(self.node, reason)

    # callbacks

    def at_flush(self, callback: Callable[[], None]) -> None:
        """Call `callback` at every flush, parents before children."""
        self._registrations.at_flush.append((self.node, self._code.named(self.node, callback)))

    def at_end_of_input(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when bounded input has ended, parents before children."""
        self._registrations.at_end_of_input.append((self.node, self._code.named(self.node, callback)))

    def at_idle(self, callback: Callable[[int], bool]) -> None:
        """Call `callback(elapsed_ms)` as time passes on idle input, parents before children.

        The callback advances the operator's stream time, if it has had a record, and returns whether it may have
        forwarded records.
        """
        self._registrations.at_idle.append((self.node, self._code.named(self.node, callback)))

    def at_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the task closes."""
        self._registrations.at_close.append((self.node, self._code.named(self.node, callback)))

    def schedule(self, interval_ms: int, kind: PunctuationType, callback: Callable[[int], None]) -> Cancellable:
        """Call `callback(time)` at intervals; the first call is at the same time as in Kafka Streams."""
        failures = self.task.failures
        named = self._code.named(self.node, callback)
        if failures.guards_processing:
            named = failures.guarded_call(self.node, named, self.current.error_context)
        return self.task.punctuations.schedule(self.node, interval_ms, kind, named)

    def timer(self, callback: Callable[[int], None]) -> Timer:
        """Return a timer, which calls `callback(time_ms)` once when the wall clock reaches the time that is set."""
        failures = self.task.failures
        named = self._code.named(self.node, callback)
        if failures.guards_processing:
            named = failures.guarded_call(self.node, named, self.current.error_context)
        return self.task.punctuations.timer(self.node, named)

    # facts about this operator for the task

    def report_waits(self, waits: Callable[[], Waits]) -> None:
        """Register the function that returns the number of waiting records and the oldest wait.

        Metrics tell them, for which other threads call the function, and so does a warning at the end of bounded input.
        """
        self._registrations.waits[self.node] = waits

        def warn_of_waits() -> None:
            records = waits().records
            if records:
                logger.warning(
                    "task %s: %d records wait in %s at the end of the input: a later run goes on with them",
                    self.task.task_id,
                    records,
                    self.node,
                )

        self.at_end_of_input(warn_of_waits)

    def follow_stream_time(self) -> None:
        """Declare that its processor may schedule punctuators of stream time, which are called between two records."""
        self._registrations.follows_stream_time = True

    def hold_back(self, held_back: DelayedResults[Any]) -> None:
        """Register held-back records, which are released before every flush and before time advances."""
        self._registrations.held_back[self.node] = held_back
        self.at_flush(held_back.release_all)

    def count_bytes(self, num_bytes: Callable[[], int]) -> None:
        """Register a function that returns the bytes held until the next commit."""
        self._registrations.count_bytes(num_bytes)

    def keep_in_metadata(self, name: str, read: Callable[[], int]) -> int:
        """Store a number in the task metadata, such as a stream time; return its value at the last commit, -1 at first.

        Parameters
        ----------
        name : str
            Unique within the operator.
        read : callable
            Returns the number to store.
        """
        return self._registrations.keep_in_metadata(f"{self.node}:{name}", read)


class ClosureOperator(Operator, ABC):
    """An operator with a closure of its own in each task."""

    __slots__ = ()

    @abstractmethod
    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        """Return the closure that takes the records.

        Parameters
        ----------
        context : OperatorContext
            Gives access to stores, headers and metadata of the current input record, cache, punctuation, and callbacks
            at flush and end of input. `context.children` holds the closures of the single children, for operators
            that choose among them.
        forward : callable
            Passes (key, value, timestamp) to all children, in order of declaration.
        """


@singledispatch
def bind_operator(operator: Operator, context: OperatorContext, forward: Forward) -> Forward:
    """Return the closure of an operator under its node's name, with errors passed to the handler.

    Raises
    ------
    TypeError
        If no binding is registered for operators of this type.
    """
    raise TypeError(f"{operator!r} cannot be bound: derive it from ClosureOperator or StatementOperator.")


@bind_operator.register
def _(operator: ClosureOperator, context: OperatorContext, forward: Forward) -> Forward:
    return context.guarded(operator.bind(context, forward))


@bind_operator.register
def _(operator: StatementOperator, context: OperatorContext, forward: Forward) -> Forward:
    return context.chained(operator.statement(), passing_on(forward))
