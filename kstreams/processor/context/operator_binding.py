"""From an operator to its closure in one task: one function, which finds by the operator's type how it is bound.

Closures are made from the sinks upwards: each gets the closure of what follows. A record is three positional
arguments; what belongs to the whole input record lies in the `TaskContext`.
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
        """The closure that takes the records.

        Parameters
        ----------
        context : OperatorContext
            Stores, headers and metadata of the current input record, cache, punctuation, callbacks at flush and end of
            input; `context.children` holds the closures of the children one by one, for operators that choose among
            them.
        forward : callable
            Passes (key, value, timestamp) to all children, in order of declaration.
        """


@singledispatch
def bind_operator(operator: Operator, context: OperatorContext, forward: Forward) -> Forward:
    """The closure of an operator under its node's name; the handler is asked about errors in it.

    Raises
    ------
    TypeError
        When nothing is registered for operators of this type.
    """
    raise TypeError(f"{operator!r} cannot be bound: derive it from ClosureOperator or StatementOperator.")


@bind_operator.register
def _(operator: ClosureOperator, context: OperatorContext, forward: Forward) -> Forward:
    return context.guarded(operator.bind(context, forward))


@bind_operator.register
def _(operator: StatementOperator, context: OperatorContext, forward: Forward) -> Forward:
    return context.chained(operator.statement(), passing_on(forward))
