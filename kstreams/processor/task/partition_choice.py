"""Which partitions the rows of a sink go to, where the sink has a partitioner."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from operator import index
from typing import Any

import numpy as np

from kstreams.errors import ProcessingError
from kstreams.processor.context.encoded_rows import BY_KEY
from kstreams.processor.task.sink_rows import SinkRows, shown


def chosen_partitions(choose: Callable[..., Any], topic: str, count: int, rows: SinkRows) -> np.ndarray[Any, Any]:
    """Ask a partitioner for every row: a number, None for the default, or several (the row is copied to each)."""
    chosen = []
    for key, value in zip(rows.keys, rows.values, strict=True):
        try:
            chosen.append(_choices(choose(topic, key, value, count), count))
        except Exception as error:
            place = f"with key {shown(key)} and value {shown(value)} for topic {topic}"
            raise ProcessingError(rows.sink.name, rows.sink.declared_at, place, error) from error
    if any(len(partitions) != 1 for partitions in chosen):
        rows.keep([row for row, partitions in enumerate(chosen) for _ in partitions])
    return np.array(list(chain.from_iterable(chosen)), dtype=np.int64)


def _choices(answer: Any, count: int) -> list[int]:
    if answer is None:
        return [BY_KEY]
    found = sorted(map(index, answer)) if isinstance(answer, Iterable) else [index(answer)]
    if found and not 0 <= found[0] <= found[-1] < count:
        raise ValueError(f"the partitioner chose {answer}, but there are partitions 0 to {count - 1}")
    return found
