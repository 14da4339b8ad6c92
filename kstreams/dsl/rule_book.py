"""`RuleBook`: one function per node type for one target, and what the target declares it cannot do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from kstreams.errors import UnsupportedError

R = TypeVar("R", bound=Callable[..., Any])


class RuleBook(Generic[R]):
    """Rules keyed by the node's type object.

    Parameters
    ----------
    target : str
        What the rules lead to, as errors call it.

    Examples
    --------
    >>> book = RuleBook("Spark")
    >>> @book.rule(int)
    ... def lower_int(node):
    ...     return node + 1
    >>> book.rule_for(41)(41)
    42
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self._rules: dict[type, R] = {}
        self._unsupported: dict[type, str] = {}

    def rule(self, *node_types: type) -> Callable[[R], R]:
        """Register the decorated function as the rule of these node types."""

        def register(function: R) -> R:
            for node_type in node_types:
                self._claim(node_type)
                self._rules[node_type] = function
            return function

        return register

    def declare_unsupported(self, node_type: type, reason: str) -> None:
        """Say that the target cannot do a node type; `reason` ends the sentence '... because'."""
        self._claim(node_type)
        self._unsupported[node_type] = reason

    def _claim(self, node_type: type) -> None:
        if self.covers(node_type):
            raise ValueError(f"{self.target} already has a rule or a declaration for {node_type.__name__}")

    @property
    def node_types(self) -> list[type]:
        """All that have a rule or a declaration, by name."""
        return sorted({*self._rules, *self._unsupported}, key=lambda node_type: node_type.__name__)

    def covers(self, node_type: type) -> bool:
        """Whether there is a rule or a declaration."""
        return node_type in self._rules or node_type in self._unsupported

    def supports(self, node_type: type) -> bool:
        """Whether there is a rule."""
        return node_type in self._rules

    @property
    def unsupported(self) -> Mapping[type, str]:
        """The declared node types and the reasons."""
        return MappingProxyType(self._unsupported)

    def rule_for(self, node: Any) -> R:
        """The rule of a node.

        Raises
        ------
        UnsupportedError
            When the target cannot do it; names the operator, the user's line and the reason.
        """
        if not self.supports(type(node)):
            raise UnsupportedError(self._refusal(node))
        return self.rule_of(type(node))

    def rule_of(self, node_type: type) -> R:
        """The rule of a node type that has one."""
        return self._rules[node_type]

    def _refusal(self, node: Any) -> str:
        reason = self._unsupported.get(type(node), "it has no rule for it yet")
        return f"{node} cannot run on {self.target}, because {reason}"
