"""Operators of streams that change headers, and nothing else of a record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from kstreams.dsl.graph.node import Node
from kstreams.dsl.graph.signatures import called_with


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MapHeaders(Node):
    """New headers for each record."""

    changes_values: ClassVar[bool] = True

    function: Annotated[Callable[[Any], Any], called_with("headers", many=True, of_record=True)]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WithHeaders(Node):
    """More headers for each record: names and what each is made of, an expression or the value itself."""

    changes_values: ClassVar[bool] = True

    headers: tuple[tuple[str, Any], ...]
