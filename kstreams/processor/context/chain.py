"""Chains of simple steps as one closure: each step is a statement, and the statements are compiled together.

A record then pays for one call instead of one per step. The order of all calls of user functions stays what it is:
depth first, record by record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent
from typing import Any, NamedTuple, TypeAlias

from kstreams.processor.topology.operator import Forward, Operator

OnError: TypeAlias = Callable[[Exception, object, object, int], None]
"""`on_error(error, key, value, timestamp)` of the step that failed; the later steps of the chain are skipped."""

_GUARDED = """\
try:
{steps}
except Exception as error:
    on_error(error, key, value, timestamp)"""


@dataclass(frozen=True, slots=True)
class Statement:
    """The effect of a step on `key`, `value` and `timestamp`, as lines of Python.

    Parameters
    ----------
    text : str
        The statement. It may assign to the three names, or `return` to drop the record. Other names are in braces.
    names : mapping of str to object
        The objects behind the names in braces.
    """

    text: str
    names: Mapping[str, object]


class Link(NamedTuple):
    """A statement in a chain, and the node that its errors name."""

    node: str
    statement: Statement


class StatementOperator(Operator, ABC):
    """A stateless operator that is one statement in the closure of a chain."""

    __slots__ = ()

    @abstractmethod
    def statement(self) -> Statement:
        """Return the statement for one record."""


def passing_on(forward: Forward) -> Statement:
    """Return the statement that ends a chain: it calls another closure."""
    return Statement("{forward}(key, value, timestamp)", {"forward": forward})


def compiled(links: Sequence[Link], on_error: OnError | None = None) -> tuple[Forward, tuple[str, ...]]:
    """Compile all links into one closure; also return the node of each line of the closure below the first.

    Parameters
    ----------
    links : sequence of Link
    on_error : callable, optional
        Called with the error of a step, and with the record that the step received.

    Examples
    --------
    >>> double = Statement("value = {function}(value)", {"function": lambda value: value * 2})
    >>> chain, nodes = compiled([Link("DOUBLE", double), Link("SHOW", passing_on(print))])
    >>> chain("a", 4, 0)
    a 8 0
    >>> nodes
    ('DOUBLE', 'SHOW')
    """
    lines: list[str] = []
    nodes: list[str] = []
    namespace: dict[str, Any] = {}
    for place, (node, statement) in enumerate(links):
        names = {name: f"{name}_{place}" for name in statement.names}
        namespace |= {names[name]: value for name, value in statement.names.items()}
        added = statement.text.format_map(names).splitlines()
        lines += added
        nodes += [node] * len(added)
    body = "\n".join(lines or ["pass"])
    if on_error is not None:
        namespace["on_error"] = on_error
        body = _GUARDED.format(steps=indent(body, "    "))
        nodes = [links[0].node, *nodes, links[0].node, links[0].node]  # a line before the steps, two after them
    source = "def chain(key, value, timestamp):\n" + indent(body, "    ")
    exec(compile(source, f"<chain from {links[0].node}>", "exec"), namespace)  # all statements are our own
    chain: Forward = namespace["chain"]
    return chain, tuple(nodes)
