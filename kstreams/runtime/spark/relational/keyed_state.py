"""`by_key`: a Python function processes the records of each key in order; Spark keeps the state of the key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from kstreams.runtime.spark.exchange.rows import running_stream_times
from kstreams.runtime.spark.relational.frame import EVENT_TIME, Frame
from kstreams.runtime.spark.relational.functions import F

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState


class KeyRecord(NamedTuple):
    """An input or output record of a key.

    Parameters
    ----------
    side : int
        The index of the frame that the record comes from.
    """

    side: int
    origin: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: object


class SavedState(NamedTuple):
    """The state of a key in Spark: some bytes, and their time."""

    state: bytes | None = None
    timestamp: int = -1


NO_STATE = SavedState()


class KeyedState(ABC):
    """The state of one key during a step of a query."""

    def due(self, *, has_timed_out: bool) -> Iterable[KeyRecord]:
        """Return the output before the first record. `has_timed_out` is True if the state expired without a record."""
        return ()

    @abstractmethod
    def take(self, record: KeyRecord) -> Iterable[KeyRecord]:
        """Process the next record, and return its output."""

    @abstractmethod
    def saved_state(self) -> SavedState:
        """Return the state for the next step. Spark deletes the state of a key if it has no bytes."""


StateOfKey: TypeAlias = Callable[..., KeyedState]
"""`state(*arguments, key, saved, latest_ms)`; `latest_ms` is the greatest time of all records of earlier steps."""

UNSEEN_MS = -1

_OUT = (
    "side int, origin bigint, offset bigint, timestamp bigint, key binary, value binary, "
    "headers array<struct<name: string, value: binary>>"
)
_STATE = "state binary, timestamp bigint"


def by_key(
    frames: Sequence[Frame],
    state: StateOfKey,
    arguments: tuple[object, ...],
    *,
    delay_ms: int | None = None,
    key_column: str = "key",
) -> DataFrame:
    """Process the records of some frames key by key.

    Parameters
    ----------
    frames : sequence of Frame
        The index of a frame is the side of its records. At equal times, records of the first frame go first.
    state : callable
        Creates the state of a key.
    arguments : tuple
        The first arguments of `state`; functions and serdes of the user are sent to the workers by value.
    delay_ms : int, optional
        The delay of the watermark. A key is due when the greatest time so far is later than its time by this delay.
    key_column : str
        The column whose values the records are grouped by.
    """
    from kstreams.runtime.spark.cluster.shipping import pack  # loads Spark

    timed = [] if delay_ms is None else [EVENT_TIME]
    grouped_by = [] if key_column == "key" else [key_column]
    sides = [_records_of_side(side, frame, [*timed, *grouped_by]) for side, frame in enumerate(frames)]
    grouped = reduce(lambda rows, other_rows: rows.unionByName(other_rows), sides).groupBy(key_column)
    run = _process_key(pack((state, arguments)), delay_ms)
    applied = grouped.applyInPandasWithState(run, _OUT, _STATE, "append", "EventTimeTimeout" if timed else "NoTimeout")
    return applied.drop("side").withColumn("topic", F.lit("?"))


def _records_of_side(side: int, frame: Frame, other_columns: list[str]) -> DataFrame:
    return frame.rows.select(F.lit(side).alias("side"), *KeyRecord._fields[1:], *other_columns)


def _process_key(
    packed: bytes, delay_ms: int | None
) -> Callable[[tuple[object, ...], Iterable[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]:
    """Return the function that Spark calls for each key with its records and its state."""

    def run(key: tuple[object, ...], frames: Iterable[pd.DataFrame], group_state: GroupState) -> Iterator[pd.DataFrame]:
        import pandas as pd

        from kstreams.runtime.spark.cluster.shipping import unpack

        create_state, arguments = unpack(packed)
        saved = SavedState(*group_state.get) if group_state.exists else NO_STATE
        state: KeyedState = create_state(*arguments, *key, saved, _latest_ms(group_state, delay_ms))
        results = list(state.due(has_timed_out=group_state.hasTimedOut))
        for record in in_task_order(chain.from_iterable(map(_records, frames))):
            results += state.take(record)
        _store(group_state, state.saved_state(), delay_ms)
        yield pd.DataFrame(results, columns=list(KeyRecord._fields), dtype=object)

    return run


def _latest_ms(group_state: GroupState, delay_ms: int | None) -> int:
    """Return the greatest time of all records of earlier steps."""
    watermark_ms = 0 if delay_ms is None else group_state.getCurrentWatermarkMs()
    return watermark_ms + delay_ms if watermark_ms > 0 and delay_ms is not None else UNSEEN_MS


def _store(group_state: GroupState, saved: SavedState, delay_ms: int | None) -> None:
    """Store the state of a key in Spark until the watermark has passed its time."""
    if saved.state is None:
        if group_state.exists:
            group_state.remove()
        return
    group_state.update(tuple(saved))
    if delay_ms is not None:
        group_state.setTimeoutTimestamp(max(saved.timestamp + 1, group_state.getCurrentWatermarkMs(), 1))


def _records(frame: pd.DataFrame) -> Iterator[KeyRecord]:
    return map(KeyRecord._make, zip(*(frame[name].tolist() for name in KeyRecord._fields), strict=True))


def in_task_order(records: Iterable[KeyRecord]) -> list[KeyRecord]:
    """Sort the records of one key as tasks process them: each partition in order, and partitions by stream time.

    Examples
    --------
    >>> rows = [(1, 7, 0, 5), (0, 3, 1, 2), (0, 3, 0, 6)]
    >>> [record.offset for record in in_task_order(KeyRecord(*row, None, None, None) for row in rows)]
    [0, 0, 1]
    """
    by_partition = sorted(records, key=lambda record: record[:3])
    partitions = np.array([record[:2] for record in by_partition], np.int64).reshape(-1, 2)
    starts = np.flatnonzero(np.diff(partitions, axis=0, prepend=partitions[:1] - 1).any(axis=1))
    times = np.array([record.timestamp for record in by_partition], np.int64)
    order = np.argsort(running_stream_times(starts, times), kind="stable")
    return [by_partition[index] for index in order.tolist()]
