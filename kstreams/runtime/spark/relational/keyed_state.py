"""`by_key`: a Python function processes the records of each key in order; Spark keeps the state of the key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from kstreams.runtime.spark.exchange.rows import reached_by_writers
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
        The index of its frame.
    """

    side: int
    origin: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Any


class SavedState(NamedTuple):
    """The state of a key in Spark: some bytes, and their time."""

    state: bytes | None = None
    timestamp: int = -1


UNKNOWN = SavedState()


class KeyedState(ABC):
    """The state of one key during a step of a query."""

    def due(self, *, is_over: bool) -> Iterable[KeyRecord]:
        """Return the output before the first record. `is_over` is True if the state has expired without a record."""
        return ()

    @abstractmethod
    def take(self, record: KeyRecord) -> Iterable[KeyRecord]:
        """Process the next record, and return its output."""

    @abstractmethod
    def saved_state(self) -> SavedState:
        """Return the state for the next step; a state without bytes is deleted."""


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
    arguments: tuple[Any, ...],
    *,
    delay_ms: int | None = None,
    mark: str | None = None,
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
    mark : str, optional
        The column that replaces the key.
    """
    from kstreams.runtime.spark.cluster.shipping import pack  # loads Spark

    timed = [] if delay_ms is None else [EVENT_TIME]
    marked = [] if mark is None else [mark]
    sides = [_numbered(side, frame, [*timed, *marked]) for side, frame in enumerate(frames)]
    grouped = reduce(lambda rows, other_rows: rows.unionByName(other_rows), sides).groupBy(mark or "key")
    run = _through_key(pack((state, arguments)), delay_ms)
    applied = grouped.applyInPandasWithState(run, _OUT, _STATE, "append", "EventTimeTimeout" if timed else "NoTimeout")
    return applied.drop("side").withColumn("topic", F.lit("?"))


def _numbered(side: int, frame: Frame, more: list[str]) -> DataFrame:
    return frame.rows.select(F.lit(side).alias("side"), *KeyRecord._fields[1:], *more)


def _through_key(
    packed: bytes, delay_ms: int | None
) -> Callable[[object, Iterable[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]:
    def run(key: Any, frames: Iterable[pd.DataFrame], group_state: GroupState) -> Iterator[pd.DataFrame]:
        import pandas as pd

        from kstreams.runtime.spark.cluster.shipping import unpack

        make, arguments = unpack(packed)
        saved = SavedState(*group_state.get) if group_state.exists else UNKNOWN
        state: KeyedState = make(*arguments, *key, saved, _latest_ms(group_state, delay_ms))
        results = list(state.due(is_over=group_state.hasTimedOut))
        for record in in_order(chain.from_iterable(map(_records, frames))):
            results += state.take(record)
        _store(group_state, state.saved_state(), delay_ms)
        yield pd.DataFrame(results, columns=list(KeyRecord._fields), dtype=object)

    return run


def _latest_ms(group_state: GroupState, delay_ms: int | None) -> int:
    """Return the greatest time of all records in the steps before."""
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


def in_order(records: Iterable[KeyRecord]) -> list[KeyRecord]:
    """Sort the records of one key as tasks take them: each partition in order, and partitions by stream time.

    Examples
    --------
    >>> rows = [(1, 7, 0, 5), (0, 3, 1, 2), (0, 3, 0, 6)]
    >>> [record.offset for record in in_order(KeyRecord(*row, None, None, None) for row in rows)]
    [0, 0, 1]
    """
    in_order = sorted(records, key=lambda record: record[:3])
    runs = np.array([record[:2] for record in in_order], np.int64).reshape(-1, 2)
    starts = np.flatnonzero(np.diff(runs, axis=0, prepend=runs[:1] - 1).any(axis=1))
    times = np.array([record.timestamp for record in in_order], np.int64)
    return [in_order[at] for at in np.argsort(reached_by_writers(starts, times), kind="stable").tolist()]
