"""The binding of an operator: `bind_operator` creates its closure in one task, by the type of the operator.

Closures are created from the sinks upwards: each gets the closures of its children. A record is three positional
arguments; the `TaskContext` holds the rest of the input record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import singledispatch

from kstreams.processor.context.chain import StatementOperator, passing_on
from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.topology.operator import Forward, Operator


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
