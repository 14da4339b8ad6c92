"""`Unsayable`: the reason why an operator, an expression or a type has no text in PySpark."""

from __future__ import annotations

from kstreams.dsl.graph import Node


class Unsayable(Exception):
    """A part of a topology that has no PySpark text with the same results; its text is the reason."""


class UnsayableNode(Unsayable):
    """An operator without text.

    Parameters
    ----------
    node : Node
    reason : str
    """

    def __init__(self, node: Node, reason: str) -> None:
        super().__init__(f"{node}: {reason}")
        self.node = node
        self.reason = reason
