"""Steps that the user writes as processors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from kstreams.dsl.graph.node import Keys, Node, Typing
from kstreams.processor.process_api import Processor


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Process(Node):
    """Gives each record to a processor, which forwards what it likes.

    Parameters
    ----------
    supplier : callable
        Makes a new processor for each task.
    stores : tuple of str
        Names of the state stores it uses.
    """

    keys: ClassVar[Keys] = Keys.CHANGED

    supplier: Callable[[], Processor[Any, Any, Any, Any]]
    stores: tuple[str, ...] = ()
    key: Typing = None
    value: Typing = None
