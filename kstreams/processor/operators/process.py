"""A user's own processor as a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kstreams.processor.context import NodeContext
from kstreams.processor.operator import Forward
from kstreams.processor.process_api import Processor, make_processor, start
from kstreams.record import Record


@dataclass(frozen=True, slots=True)
class Process:
    """Runs a processor that `supplier()` makes, a new one for each task."""

    supplier: Callable[[], Processor[Any, Any, Any, Any]]

    def bind(self, context: NodeContext, forward: Forward) -> Forward:
        take = start(make_processor(self.supplier, context.node), context, forward)
        task = context.task

        def process(key: Any, value: Any, timestamp: int) -> None:
            take(Record(key=key, value=value, timestamp=timestamp, headers=task.headers))

        return process
