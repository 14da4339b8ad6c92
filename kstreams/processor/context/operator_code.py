"""`OperatorCode`: maps lines of code to the operators of a task, so that tracebacks name the failed operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any, TypeVar, cast

from kstreams.processor.context.chain import Link, OnError, compiled
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.failures import Failures
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
        self._chains: dict[CodeType, tuple[str, ...]] = {}  # the operator of each line of a chain below the first

    def named(self, node: str, function: F) -> F:
        """Return a function with a code object that bears the operator's name.

        A traceback then names the failed operator, at no cost per record, and the interpreter specialises each closure
        for the functions that it calls. Any callable but a plain Python function is returned unchanged.
        """
        if not isinstance(function, FunctionType):
            return function
        copy = _under_name(node, function)
        self._nodes[copy.__code__] = node
        return cast("F", copy)

    def chained(self, links: Sequence[Link]) -> Forward:
        """Return one closure for a chain of simple operators, each of which is identified by its lines."""
        chain, nodes = compiled(links, self._on_error() if self._failures.guards_processing else None)
        copy = _under_name(links[0].node, cast("FunctionType", chain))
        self._chains[copy.__code__] = nodes
        return copy

    def failed_operator(self, traceback: TracebackType | None) -> str | None:
        """Return the operator whose closure is innermost in a traceback; None if no closure had been entered."""
        name = None
        while traceback is not None:
            name = self._operator_at(traceback.tb_frame.f_code, traceback.tb_lineno) or name
            traceback = traceback.tb_next
        return name

    def running_operator(self, frame: FrameType | None) -> str | None:
        """Return the operator whose closure is innermost in the frames of a thread; None outside of all closures."""
        while frame is not None:
            node = self._operator_at(frame.f_code, frame.f_lineno)
            if node is not None:
                return node
            frame = frame.f_back
        return None

    def _operator_at(self, code: CodeType, line: int) -> str | None:
        nodes = self._chains.get(code)
        return self._nodes.get(code) if nodes is None else nodes[line - code.co_firstlineno - 1]

    def _on_error(self) -> OnError:
        """Return the function that chains call when an operator in them fails."""
        failures = self._failures
        current = self._current

        def on_error(error: Exception, key: object, value: object, timestamp: int) -> None:
            at = cast("TracebackType", error.__traceback__)
            node = cast("str", self._operator_at(at.tb_frame.f_code, at.tb_lineno))
            record = Record(key=key, value=value, timestamp=timestamp)
            failures.processing(current.error_context(node, timestamp), record, error)

        return on_error


def _under_name(node: str, function: FunctionType) -> FunctionType:
    """Copy a function with a code object of its own; equal code objects would be confused, so the name differs."""
    code = function.__code__.replace(co_name=node)
    copy = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy
