"""`by_key`: one Python function goes through the records of each key, in order; Spark keeps what it knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from kstreams.runtime.spark.exchange.rows import merge_order
from kstreams.runtime.spark.relational.frame import EVENT_TIME, Frame
from kstreams.runtime.spark.relational.functions import F

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame


class KeyRecord(NamedTuple):
    """A record that comes to a key, or one that goes out.

    Parameters
    ----------
    side : int
        Which of the frames it is of.
    """

    side: int
    origin: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Any


class Kept(NamedTuple):
    """What is known of a key: some bytes, and the time that they are of."""

    state: bytes | None = None
    timestamp: int = -1


KeyStep: TypeAlias = Callable[..., tuple[Kept, Sequence[KeyRecord]]]
"""`step(*given, kept, record, seen_ms)`: what is known after the record, and what goes out.

`seen_ms` is the greatest time of all records in the steps before, or of none.
"""

KeyClose: TypeAlias = Callable[..., tuple[Kept, Sequence[KeyRecord]]]
"""`close(*given, key, kept, seen_ms)`: what is left of what is known, and what goes out, once time has gone on."""

UNSEEN_MS = -1

_OUT = (
    "side int, origin bigint, offset bigint, timestamp bigint, key binary, value binary, "
    "headers array<struct<name: string, value: binary>>"
)
_STATE = "state binary, timestamp bigint"


def by_key(
    frames: Sequence[Frame],
    step: KeyStep,
    given: tuple[Any, ...],
    *,
    delay_ms: int | None = None,
    mark: str | None = None,
    close: KeyClose | None = None,
) -> DataFrame:
    """What a function makes of the records of some frames, key by key.

    Parameters
    ----------
    frames : sequence of Frame
        Their number is the side of their records. At one time, those of the first go first.
    step : callable
    given : tuple
        Its first arguments; functions and serdes of the user are sent to the workers by value.
    delay_ms : int, optional
        Of the watermark of the frames. A key is forgotten when the greatest time seen is so much after its own.
    mark : str, optional
        A column that stands for the key: what it holds is given to `step` behind `given`.
    close : callable, optional
        Called before the records of a step, and when a key would be forgotten: it decides.
    """
    from kstreams.runtime.spark.cluster.shipping import pack  # loads Spark

    timed = [] if delay_ms is None else [EVENT_TIME]
    marked = [] if mark is None else [mark]
    sides = [_numbered(side, frame, [*timed, *marked]) for side, frame in enumerate(frames)]
    grouped = reduce(lambda rows, other: rows.unionByName(other), sides).groupBy(mark or "key")
    run = _through_key(pack((step, close, given)), delay_ms, gives_mark=mark is not None)
    made = grouped.applyInPandasWithState(run, _OUT, _STATE, "append", "EventTimeTimeout" if timed else "NoTimeout")
    return made.drop("side").withColumn("topic", F.lit("?"))


def _numbered(side: int, frame: Frame, more: list[str]) -> DataFrame:
    return frame.rows.select(F.lit(side).alias("side"), *KeyRecord._fields[1:], *more)


def _through_key(
    packed: bytes, delay_ms: int | None, *, gives_mark: bool
) -> Callable[[Any, Iterable[pd.DataFrame], Any], Iterator[pd.DataFrame]]:
    def run(key: Any, frames: Iterable[pd.DataFrame], held: Any) -> Iterator[pd.DataFrame]:
        import pandas as pd

        from kstreams.runtime.spark.cluster.shipping import unpack

        step, close, given = unpack(packed)
        given = (*given, *key) if gives_mark else given
        kept, made, seen_ms = Kept(*held.get) if held.exists else Kept(), list[KeyRecord](), _seen(held, delay_ms)
        if close is not None:
            kept, results = close(*given, bytes(key[0]), kept, seen_ms)
            made += results
        for record in in_order(chain.from_iterable(map(_records, frames))):
            kept, results = step(*given, kept, record, seen_ms)
            made += results
        _hold(held, kept, delay_ms, is_over=held.hasTimedOut and close is None)
        yield pd.DataFrame(made, columns=list(KeyRecord._fields), dtype=object)

    return run


def _seen(held: Any, delay_ms: int | None) -> int:
    """The greatest time of all records in the steps before."""
    watermark_ms = 0 if delay_ms is None else held.getCurrentWatermarkMs()
    return watermark_ms + delay_ms if watermark_ms > 0 and delay_ms is not None else UNSEEN_MS


def _hold(held: Any, kept: Kept, delay_ms: int | None, *, is_over: bool) -> None:
    """Have Spark keep what is known of a key, until the watermark has passed its time."""
    if is_over or kept.state is None:
        if held.exists:
            held.remove()
        return
    held.update(tuple(kept))
    if delay_ms is not None:
        held.setTimeoutTimestamp(max(kept.timestamp + 1, held.getCurrentWatermarkMs(), 1))


def _records(frame: pd.DataFrame) -> Iterator[KeyRecord]:
    return map(KeyRecord._make, zip(*(frame[name].tolist() for name in KeyRecord._fields), strict=True))


def in_order(records: Iterable[KeyRecord]) -> list[KeyRecord]:
    """The records of one key as tasks would take them: those of each partition in order, partitions by stream time.

    Examples
    --------
    >>> given = [(1, 7, 0, 5), (0, 3, 1, 2), (0, 3, 0, 6)]
    >>> [row.offset for row in in_order(KeyRecord(*each, None, None, None) for each in given)]
    [0, 0, 1]
    """
    found = sorted(records, key=lambda record: record[:3])
    runs = np.array([record[:2] for record in found], np.int64).reshape(-1, 2)
    starts = np.flatnonzero(np.diff(runs, axis=0, prepend=runs[:1] - 1).any(axis=1))
    times = np.array([record.timestamp for record in found], np.int64)
    return [found[at] for at in merge_order(starts, times).tolist()]
