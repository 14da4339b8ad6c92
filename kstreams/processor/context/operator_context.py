"""`OperatorContext`: what an operator gets from its task when it is bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, TypeVar, cast

from kstreams.errors import TopologyError
from kstreams.processor.api.punctuation import Cancellable, PunctuationType
from kstreams.processor.context.chain import Link, Statement
from kstreams.processor.context.checked_store import checked
from kstreams.processor.context.registrations import Registrations
from kstreams.processor.context.task_context import TaskContext
from kstreams.processor.topology.operator import Forward

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S")


class OperatorContext:
    """What one operator gets when a task binds it.

    Parameters
    ----------
    node : str
        Its name.
    task : TaskContext
        Shared by all closures of the task.
    children : mapping of str to Forward
        The closures of its children by name, in order of declaration.
    callbacks : Registrations
        Where it registers what is to be called at flushes and at the end of input.
    connected : tuple of str
        The stores that it was connected to.
    """

    __slots__ = ("_callbacks", "children", "connected", "live", "node", "task")

    def __init__(
        self,
        node: str,
        task: TaskContext,
        children: Mapping[str, Forward],
        callbacks: Registrations,
        connected: tuple[str, ...] = (),
    ) -> None:
        self.node, self.task, self.children, self._callbacks = node, task, children, callbacks
        self.connected = connected
        self.live: Any = None  # what the columnar form of this operator, if it has one, shares with its closure

    @property
    def caching(self) -> bool:
        """Whether the record cache is on (`statestore.cache.max.bytes` above 0)."""
        return self.task.caching

    def state_store(self, name: str) -> Any:
        """The live store of this name: one of the task's, or a global one."""
        found = self.task.stores.get(name)
        if found is None:
            found = self.task.global_stores.get(name)
        if found is None:
            known = ", ".join(sorted([*self.task.stores, *self.task.global_stores])) or "none"
            raise TopologyError(
                f"{self.node} asks for the state store {name!r}, which task {self.task.task_id} does not have "
                f"(it has: {known}). Connect the store to the operator."
            )
        return checked(found) if self.task.failures.guards_processing else found

    def shared(self, name: str, make: Callable[[], S]) -> S:
        """An object that operators of one task share, made by the first that asks for it."""
        if name not in self.task.shared:
            self.task.shared[name] = make()
        found: S = self.task.shared[name]
        return found

    def chained(self, *statements: Statement) -> Forward:
        """Statements of this operator as one closure."""
        return self._callbacks.chained([Link(self.node, statement) for statement in statements])

    def guarded(self, closure: Forward) -> Forward:
        """The closure of this operator under its name, of which handlers are told what goes wrong in it."""
        closure, failures = self.named(closure), self.task.failures
        return failures.guarded(self.node, closure, self.task.failure) if failures.guards_processing else closure

    def at_flush(self, callback: Callable[[], None]) -> None:
        """Call `callback` at every flush, parents before children."""
        self._callbacks.at_flush.append((self.node, self.named(callback)))

    def at_end_of_input(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when bounded input has ended, parents before children."""
        self._callbacks.at_end_of_input.append((self.node, self.named(callback)))

    def at_idle(self, callback: Callable[[int], bool]) -> None:
        """Call `callback(elapsed_ms)` as time passes on idle input, parents before children.

        The callback moves its stream time on, if it has seen a record, and says whether anything may have come out.
        """
        self._callbacks.at_idle.append((self.node, self.named(callback)))

    def at_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the task closes."""
        self._callbacks.at_close.append((self.node, self.named(callback)))

    def keep_in_metadata(self, name: str, read: Callable[[], int]) -> int:
        """Keep a number in the task metadata, such as a stream time; returns what was kept last, -1 at first.

        Parameters
        ----------
        name : str
            Unique within the operator.
        read : callable
            Gives the number to keep.
        """
        key = f"{self.node}:{name}"
        self._callbacks.kept[key] = read
        return self._callbacks.metadata.get(key, -1)

    def named(self, function: F) -> F:
        """The same function under a code object that bears this operator's name.

        A traceback then tells which operator failed, at no cost per record, and the interpreter specialises each
        closure for what it calls. Anything but a plain Python function is returned as it is.
        """
        if not isinstance(function, FunctionType):
            return function
        code = function.__code__.replace(co_name=self.node)
        self._callbacks.codes[code] = self.node
        copy = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
        copy.__kwdefaults__ = function.__kwdefaults__
        return cast("F", copy)

    def _guarded_callback(self, callback: Callable[[int], None]) -> Callable[[int], None]:
        failures = self.task.failures
        return failures.guarded_call(self.node, callback, self.task.failure) if failures.guards_processing else callback

    def share(self) -> None:
        """Let the columnar form of this operator find what it shares with the closure."""
        self._callbacks.lives[self.node] = self.live

    def dropped(self, reason: str) -> None:
        """Count the current record as dropped by this operator, and log it."""
        self.task.drop(self.node, reason)

    def schedule(self, interval_ms: int, kind: PunctuationType, callback: Callable[[int], None]) -> Cancellable:
        """Call `callback(time)` at intervals; the first time as Kafka Streams does.

        Stream time starts at the epoch, so that it fires with the first record; wall-clock time after one interval.
        """
        stream_time = kind is PunctuationType.STREAM_TIME
        punctuations = self.task.stream_time_punctuations if stream_time else self.task.wall_clock_punctuations
        first_ms = 0 if stream_time else self.task.clock.now_ms() + interval_ms
        key = f"{self.node}:punctuator:{len(self.task.schedules)}"
        first_ms = self.task.deadlines.get(key, first_ms)
        schedule = punctuations.schedule(first_ms, interval_ms, self._guarded_callback(self.named(callback)))
        if self.task.is_new:
            self.task.schedules[key] = schedule
        return schedule
