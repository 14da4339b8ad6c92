"""`ProcessOperator`: the operator of a user's processor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from kstreams.processor.topology.operator import Operator


class ProcessorKind(Enum):
    """The kind of processors that a supplier creates; it decides what their context allows."""

    ANY_KEY = "Processor"
    FIXED_KEY = "FixedKeyProcessor"
    GLOBAL_STORE = "Processor of a global store"


@dataclass(frozen=True, slots=True)
class ProcessOperator(Operator):
    """The operator that runs a processor from `supplier()`, a new one for each task.

    Parameters
    ----------
    supplier : callable
    kind : ProcessorKind
    """

    runs_processor: ClassVar[bool] = True

    supplier: Callable[[], Any]
    kind: ProcessorKind = ProcessorKind.ANY_KEY

    @property
    def fills_global_store(self) -> bool:
        return self.kind is ProcessorKind.GLOBAL_STORE
