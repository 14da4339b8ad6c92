"""Stateless operators of streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

from kstreams.dsl.graph.calls import Calls
from kstreams.dsl.graph.node import Keys, Node, Typing
from kstreams.dsl.graph.signatures import called_with
from kstreams.expressions import Expr
from kstreams.processor.operators.map_batch.frames import Frames


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MapHeaders(Node):
    """New headers for each record."""

    changes_values: ClassVar[bool] = True

    function: Annotated[Callable[[Any], Any], called_with("headers", many=True, of_record=True)]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WithHeaders(Node):
    """Further headers for each record: their names, and an expression or constant for each."""

    changes_values: ClassVar[bool] = True

    headers: tuple[tuple[str, Any], ...]


Function: TypeAlias = Callable[..., Any] | Expr
"""A function of the user: a Python function or an expression."""
PairFunction: TypeAlias = Callable[[Any, Any], tuple[Any, Any]] | tuple[Expr, Expr]
"""A function that returns a new key and value: a Python function, or an expression for each."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Filter(Node):
    """Forwards the records for which the predicate is true or, with `negate`, false."""

    predicate: Annotated[Function, called_with("key", "value", of_record=True)]
    negate: bool = False
    calls: Calls | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Map(Node):
    """A new key and value for each record."""

    keys: ClassVar[Keys] = Keys.CHANGED

    function: Annotated[PairFunction, called_with("key", "value", of_record=True)]
    key: Typing = None
    value: Typing = None
    calls: Calls | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MapValues(Node):
    """A new value for each record."""

    changes_values: ClassVar[bool] = True

    function: Annotated[Function, called_with("value", key_first=True, of_record=True)]
    with_key: bool = False
    value: Typing = None
    calls: Calls | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MapBatch(Node):
    """A new value for each record, from a function over batches of records."""

    changes_values: ClassVar[bool] = True

    function: Annotated[Callable[[Any], Any], called_with("batch", many=True)]
    frames: Frames
    max_rows: int
    value: Typing = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FlatMap(Node):
    """Any number of new keys and values for each record."""

    keys: ClassVar[Keys] = Keys.CHANGED

    function: Annotated[Callable[[Any, Any], Any], called_with("key", "value", many=True, of_record=True)]
    key: Typing = None
    value: Typing = None
    calls: Calls | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FlatMapValues(Node):
    """Any number of new values for each record."""

    changes_values: ClassVar[bool] = True

    function: Annotated[Function, called_with("value", key_first=True, many=True, of_record=True)]
    with_key: bool = False
    value: Typing = None
    calls: Calls | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SelectKey(Node):
    """A new key for each record."""

    keys: ClassVar[Keys] = Keys.CHANGED

    function: Annotated[Function, called_with("key", "value", of_record=True)]
    key: Typing = None
    calls: Calls | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Peek(Node):
    """Calls a function with each record and forwards the record."""

    function: Annotated[Callable[[Any, Any], Any], called_with("key", "value", of_record=True)]
    calls: Calls | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Foreach(Node):
    """Calls a function with each record; has no output."""

    function: Annotated[Callable[[Any, Any], Any], called_with("key", "value", of_record=True)]
    calls: Calls | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Print(Node):
    """Prints each record as `[label]: key, value`, or as the result of `mapper`, to a file or the console."""

    label: str
    mapper: Annotated[Callable[[Any, Any], Any] | None, called_with("key", "value")] = None
    file: Any = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Merge(Node):
    """The records of two streams. A stream that is merged with itself yields each record once."""

    def __post_init__(self) -> None:
        # A pass may also replace two streams by one.
        object.__setattr__(self, "parents", tuple(dict.fromkeys(self.parents)))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Split(Node):
    """Sends each record to the branch of its first true predicate, else to the default branch if there is one."""

    predicates: Annotated[tuple[Function, ...], called_with("key", "value", of_record=True)]
    branches: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Branch(Node):
    """The records of one branch of a Split."""
