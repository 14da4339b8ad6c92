"""`ProcessOperator`: a processor of the user's own, as a topology holds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from kstreams.processor.topology.operator import Operator


class ProcessorKind(Enum):
    """Which processors a supplier makes; it decides what their context allows."""

    ANY_KEY = "Processor"
    FIXED_KEY = "FixedKeyProcessor"
    GLOBAL_STORE = "Processor of a global store"


@dataclass(frozen=True, slots=True)
class ProcessOperator(Operator):
    """Runs a processor that `supplier()` makes, a new one for each task.

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
