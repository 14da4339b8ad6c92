"""The rows of a group by score, of which the best are the aggregate.

All rows of a group are rows of a store beside that of the aggregates, in the order of their scores. A change of the
table adds or removes one of them, and the best are read from the end: the cost is logarithmic in the size of the group.

Each row of the table is there twice. By score: the score, then the number of the row, so that of equal scores the
earliest is read first. By value: the serialized row, then its number, by which a row that leaves is found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Any, TypeAlias

from kstreams.errors import SerdeError
from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.operators.aggregation.emission import Results
from kstreams.processor.operators.tables.table_aggregate import RowStep, TableAggregator
from kstreams.serdes import Serde
from kstreams.serdes.member_rows import row_prefix
from kstreams.state.column_family import after_prefix
from kstreams.state.rows.ordered_bytes import has_order, ordered_bytes

Ranking: TypeAlias = tuple[int, list[Any], bytes]
"""The state of a group: the number of the next row, the best rows, and the score of the last of them in bytes."""

_BY_SCORE, _BY_VALUE = 0, 1
_NUMBER_BYTES = 8
_LAST_NUMBER = 2**64 - 1


@dataclass(frozen=True, slots=True)
class RankingAggregator(TableAggregator):
    """Keeps all rows of a group, and the `n` with the highest scores as its aggregate.

    Parameters
    ----------
    n : int
    score : callable
        `row -> score`.
    row : Serde
        The serde of rows.
    store : str
        The store of the rows of all groups.
    aggregates : str
        The store of the aggregates, which knows the serde of the groups' keys.
    """

    n: int
    score: Callable[[Any], Any]
    row: Serde
    store: str
    aggregates: str

    def initial(self) -> Ranking:
        return 0, [], b""

    @property
    def result(self) -> Results:
        return Results(itemgetter(1))

    def bind(self, context: OperatorContext) -> tuple[RowStep, RowStep]:
        key: Serde = context.state_store(self.aggregates).builder.key
        rows = RankedRows(context.state_store(self.store), self)

        n = self.n

        def add(group: Any, row: Any, state: Ranking) -> Ranking:
            number, best, least = state
            rows.enter(key.serialize(group))
            score = rows.add(row, number)
            # Of equal scores the earlier row is better.
            return (number + 1, best, least) if len(best) == n and score <= least else (number + 1, *rows.best())

        def subtract(group: Any, row: Any, state: Ranking) -> Ranking:
            number, best, least = state
            rows.enter(key.serialize(group))
            score = rows.remove(row)
            return state if len(best) == n and score < least else (number, *rows.best())

        return add, subtract


class RankedRows:
    """The rows of the groups of one task.

    Parameters
    ----------
    store : KeyValueStore of bytes
    ranking : RankingAggregator
    """

    __slots__ = ("_by_score", "_by_value", "_end", "_ranking", "_store")

    def __init__(self, store: Any, ranking: RankingAggregator) -> None:
        self._store = store
        self._ranking = ranking
        self.enter(b"")

    def enter(self, group: bytes) -> None:
        """Go to a group, by its serialized key."""
        self._by_score = row_prefix(group, _BY_SCORE)
        self._by_value = row_prefix(group, _BY_VALUE)
        self._end = after_prefix(self._by_score)

    def add(self, row: Any, number: int) -> bytes:
        """Add a row with its number; return its score."""
        score = self._ranking.score(row)
        if not has_order(score):
            raise SerdeError(
                f"top_n() ranks by {score!r}, a {type(score).__name__}: return a number, text, bytes, a date or time, "
                "or a tuple of these"
            )
        ordered = ordered_bytes(score)
        data = self._ranking.row.serialize(row)
        self._store.put(self._by_score + ordered + _number(_LAST_NUMBER - number), data)
        self._store.put(self._by_value + ordered_bytes(data) + _number(number), ordered)
        return ordered

    def remove(self, row: Any) -> bytes:
        """Remove the earliest row that equals a row; return its score."""
        equal_rows = self._by_value + ordered_bytes(self._ranking.row.serialize(row))
        place, score = next(self._store.first_rows(equal_rows, after_prefix(equal_rows)))
        number = int.from_bytes(place[-_NUMBER_BYTES:], "big")
        self._store.put(place, None)
        self._store.put(self._by_score + score + _number(_LAST_NUMBER - number), None)
        ordered: bytes = score
        return ordered

    def best(self) -> tuple[list[Any], bytes]:
        """Return the best rows, best first, and the score of the last one."""
        rows = list(islice(self._store.first_rows(self._by_score, self._end, reverse=True), self._ranking.n))
        least = rows[-1][0][len(self._by_score) : -_NUMBER_BYTES] if rows else b""
        return [self._ranking.row.deserialize(data) for _, data in rows], least


def _number(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big")
