"""`OperatorContext`: the interface of a task to one operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from kstreams.errors import TopologyError
from kstreams.processor.api.punctuation import Cancellable, PunctuationType
from kstreams.processor.context.chain import Link, Statement
from kstreams.processor.context.column_handle import ColumnHandle
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.delayed_results import DelayedResults
from kstreams.processor.context.errors.checked_store import checked
from kstreams.processor.context.operator_code import OperatorCode
from kstreams.processor.context.registrations import Registrations
from kstreams.processor.context.task_context import TaskContext
from kstreams.processor.topology.operator import Forward
from kstreams.state.codecs import KeyCodec

S = TypeVar("S")
T = TypeVar("T")


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

    # facts about this operator for the task

    def follow_stream_time(self) -> None:
        """Declare that its processor may schedule punctuators of stream time, which are called between two records."""
        self._registrations.follow_stream_time()

    def hold_back(self, held_back: DelayedResults[Any]) -> None:
        """Register held-back records, which are released before every flush and before time advances."""
        self._registrations.hold_back(self.node, held_back)
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
