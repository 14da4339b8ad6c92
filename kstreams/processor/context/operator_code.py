"""`OperatorCode`: which operator of a task a line of code belongs to, so that tracebacks name the one that failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any, TypeVar, cast

from kstreams.processor.context.chain import Link, OnError, compiled
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.errors.failures import Failures
from kstreams.processor.topology.operator import Forward
from kstreams.record import Record

F = TypeVar("F", bound=Callable[..., Any])


class OperatorCode:
    """The code objects of the closures of one task.

    Parameters
    ----------
    failures : Failures
    current : CurrentRecord
    """

    __slots__ = ("_chains", "_current", "_failures", "_nodes")

    def __init__(self, failures: Failures, current: CurrentRecord) -> None:
        self._failures = failures
        self._current = current
        self._nodes: dict[CodeType, str] = {}
        self._chains: dict[CodeType, tuple[str, ...]] = {}  # of chains: the operator of each line below the first

    def named(self, node: str, function: F) -> F:
        """The same function under a code object that bears the operator's name.

        A traceback then tells which operator failed, at no cost per record, and the interpreter specialises each
        closure for what it calls. Anything but a plain Python function is returned as it is.
        """
        if not isinstance(function, FunctionType):
            return function
        copy = _under_name(node, function)
        self._nodes[copy.__code__] = node
        return cast("F", copy)

    def chained(self, links: Sequence[Link]) -> Forward:
        """One closure for a chain of simple operators, each of which is known by its lines."""
        chain, nodes = compiled(links, self._on_error() if self._failures.guards_processing else None)
        copy = _under_name(links[0].node, cast("FunctionType", chain))
        self._chains[copy.__code__] = nodes
        return copy

    def failed_operator(self, traceback: TracebackType | None) -> str | None:
        """The operator whose closure is the innermost one of a traceback; None when no closure had been entered."""
        name = None
        while traceback is not None:
            name = self._operator_at(traceback.tb_frame.f_code, traceback.tb_lineno) or name
            traceback = traceback.tb_next
        return name

    def running_operator(self, frame: FrameType | None) -> str | None:
        """The operator whose closure is the innermost one of a thread that stands at a frame; None outside of all."""
        while frame is not None:
            if (found := self._operator_at(frame.f_code, frame.f_lineno)) is not None:
                return found
            frame = frame.f_back
        return None

    def _operator_at(self, code: CodeType, line: int) -> str | None:
        nodes = self._chains.get(code)
        return self._nodes.get(code) if nodes is None else nodes[line - code.co_firstlineno - 1]

    def _on_error(self) -> OnError:
        """What chains call when an operator in them fails."""
        failures = self._failures
        current = self._current

        def on_error(error: Exception, key: object, value: object, timestamp: int) -> None:
            at = cast("TracebackType", error.__traceback__)
            node = cast("str", self._operator_at(at.tb_frame.f_code, at.tb_lineno))
            record = Record(key=key, value=value, timestamp=timestamp)
            failures.processing(current.error_context(node, timestamp), record, error)

        return on_error


def _under_name(node: str, function: FunctionType) -> FunctionType:
    """The same function with a code object of its own: those of one text are equal, unless their names differ."""
    code = function.__code__.replace(co_name=node)
    copy = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy
