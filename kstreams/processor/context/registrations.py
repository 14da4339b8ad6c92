"""`Registrations`: what the operators of a task registered while they were bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType, TracebackType
from typing import Any, cast

from kstreams.processor.context.chain import Link, OnError, compiled
from kstreams.processor.context.task_context import TaskContext
from kstreams.processor.topology.operator import Forward
from kstreams.record import Record


class Registrations:
    """What the operators of one task registered while they were bound."""

    __slots__ = (
        "_on_error",
        "at_close",
        "at_end_of_input",
        "at_flush",
        "at_idle",
        "chains",
        "codes",
        "kept",
        "lives",
        "metadata",
    )

    def __init__(self, metadata: Mapping[str, int], context: TaskContext) -> None:
        self.metadata = metadata
        self._on_error = self._told(context) if context.failures.guards_processing else None
        self.codes: dict[CodeType, str] = {}  # which operator a closure belongs to
        self.chains: dict[CodeType, tuple[str, ...]] = {}  # and each line of the closure of a chain, below its first
        self.lives: dict[str, Any] = {}  # what operators share with their columnar forms, by node
        self.kept: dict[str, Callable[[], int]] = {}
        self.at_flush: list[tuple[str, Callable[[], None]]] = []
        self.at_end_of_input: list[tuple[str, Callable[[], None]]] = []
        self.at_idle: list[tuple[str, Callable[[int], bool]]] = []
        self.at_close: list[tuple[str, Callable[[], None]]] = []

    def chained(self, links: Sequence[Link]) -> Forward:
        """One closure for a chain of simple steps, known by its lines as `named` ones are by their code."""
        chain, nodes = compiled(links, self._on_error)
        self.chains[cast("FunctionType", chain).__code__] = nodes
        return chain

    def _told(self, context: TaskContext) -> OnError:
        """What chains call when something fails in them."""

        def on_error(error: Exception, key: Any, value: Any, timestamp: int) -> None:
            at = cast("TracebackType", error.__traceback__)
            node = cast("str", self.operator_at(at.tb_frame.f_code, at.tb_lineno))
            record = Record(key=key, value=value, timestamp=timestamp)
            context.failures.processing(context.failure(node, timestamp), record, error)

        return on_error

    def operator_at(self, code: CodeType, line: int) -> str | None:
        """The operator that a line of code belongs to; None when it is of none."""
        nodes = self.chains.get(code)
        return self.codes.get(code) if nodes is None else nodes[line - code.co_firstlineno - 1]
