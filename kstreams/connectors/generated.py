"""`GeneratedSource`: rows of a class, made up from a seed and the number of the row, so that each can be made again."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from kstreams.connectors.api import Position, Source, SourceBatch, SourceReader
from kstreams.errors import ConnectorError
from kstreams.expressions.types import fields_of
from kstreams.kernel.clock import SystemClock
from kstreams.serdes.arrow_types import arrow_type
from kstreams.serdes.base import without_none

Choice: TypeAlias = "Sequence[Any] | range"
"""The values that a field may have. A tuple of two floats is the range of a float."""

_BLOCK_ROWS = 4_096
_SHORTEST_READ_MS = 20
_FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)


class GeneratedSource(Source):
    """Made-up rows of a class.

    Parameters
    ----------
    value : type
    key : str
        The field of keys. Empty for none.
    rate : float
        Rows a second of all splits. 0 for as many as possible.
    rows : int
        The number of rows of all splits. -1 for no end.
    seed : int
    splits : int
    fields : mapping of str to sequence
        The values of single fields.
    start_ms : int
        The event time of the first row. -1 for the time at which the split is first read.
    """

    has_deletes = False

    def __init__(
        self,
        value: Any,
        *,
        key: str,
        rate: float,
        rows: int,
        seed: int,
        splits: int,
        fields: Mapping[str, Choice],
        start_ms: int,
    ) -> None:
        types = fields_of(value)
        if types is None:
            raise ConnectorError(f"{value!r} has no fields to generate: pass a msgspec Struct or a dataclass")
        for name in (*fields, *filter(None, [key])):
            if name not in types:
                raise ConnectorError(f"{value.__name__} has no field {name!r}; it has {', '.join(types)}")
        self.columns = [GeneratedColumn(name, kind, fields.get(name, ())) for name, kind in types.items()]
        super().__init__(key=types[key] if key else bytes, value=value, tasks=splits)
        self.key_field = key
        self.rate = rate
        self.rows = rows
        self.seed = seed
        self.start_ms = start_ms

    def splits(self) -> Iterable[str]:
        """Return the numbers of the splits."""
        return [str(number) for number in range(self.tasks)]

    def open(self, split: str, position: Position | None) -> SourceReader:
        """Return a reader from a row on."""
        start_ms = SystemClock().wall_ms() if self.start_ms < 0 else self.start_ms
        return GeneratedReader(self, int(split), position or {"row": 0, "start": start_ms})

    def rows_of(self, split: int) -> int:
        """Return the number of rows of a split. -1 for no end."""
        return self.rows if self.rows < 0 else (self.rows + self.tasks - 1 - split) // self.tasks

    def block(self, split: int, number: int) -> pa.StructArray:
        """Return a block of rows, which depends on nothing but the seed, the split and the number."""
        columns = [column.values(self.seed, split, number) for column in self.columns]
        names = [column.name for column in self.columns]
        return pa.StructArray.from_arrays(columns, names)

    def __repr__(self) -> str:
        return f"generate({self.value.__name__}, seed={self.seed})"


class GeneratedReader:
    """Reads rows of a split at their rate.

    Parameters
    ----------
    source : GeneratedSource
    split : int
    position : Position
        The next row, and the event time of the first one.
    """

    def __init__(self, source: GeneratedSource, split: int, position: Position) -> None:
        self._source = source
        self._split = split
        self._row: int = position["row"]
        self._start_ms: int = position["start"]
        self._first_row = self._row
        self._clock = SystemClock()
        self._opened_ms = self._clock.uptime_ms()
        self._block_number = -1
        self._block = source.block(split, 0)[:0]

    def read(self) -> SourceBatch | None:
        """Return the rows that are due, up to the end of a block. None if there are none yet, or no more."""
        end = self._due_end()
        if end <= self._row:
            if self._row != self._source.rows_of(self._split):
                self._clock.sleep(_SHORTEST_READ_MS / 1000)
            return None
        number, offset = divmod(self._row, _BLOCK_ROWS)
        if number != self._block_number:
            self._block = self._source.block(self._split, number)
            self._block_number = number
        values = self._block[offset : min(offset + end - self._row, _BLOCK_ROWS)]
        numbers = np.arange(self._row, self._row + len(values))
        self._row += len(values)
        return SourceBatch(
            values=values,
            position={"row": self._row, "start": self._start_ms},
            keys=values.field(self._source.key_field) if self._source.key_field else None,
            timestamps=pa.array(self._times(numbers), pa.int64()),
        )

    def committed(self, position: Position) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def _due_end(self) -> int:
        last = self._source.rows_of(self._split)
        due = self._row + _BLOCK_ROWS
        if self._source.rate:
            elapsed_ms = self._clock.uptime_ms() - self._opened_ms
            due = self._first_row + int(elapsed_ms * self._rate_per_ms)
        return due if last < 0 else min(due, last)

    @property
    def _rate_per_ms(self) -> float:
        return self._source.rate / self._source.tasks / 1000

    def _times(self, numbers: Any) -> Any:
        """Return event times: the rows follow each other at their rate, or one a millisecond."""
        return self._start_ms + (numbers / (self._rate_per_ms or 1)).astype(np.int64)


class GeneratedColumn:
    """The values of a field.

    Parameters
    ----------
    name : str
    kind : type
        int, float, str, bool, datetime or date, or one of these or None. Others need `choices`.
    choices : sequence
        The possible values. Empty for those of the type.
    """

    def __init__(self, name: str, kind: Any, choices: Choice) -> None:
        self.name = name
        self._choices = choices
        self._kind: Any = without_none(kind)
        self._type = arrow_type(kind)
        if self._type is None or (not choices and self._kind not in _DRAWS):
            raise ConnectorError(
                f"the field {name!r} is {kind}, whose values must be named: fields={{{name!r}: [...]}}"
            )

    def values(self, seed: int, split: int, block: int) -> pa.Array:
        """Return the values of a block of rows."""
        field = zlib.crc32(self.name.encode())
        random = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, split, block, field])))
        if not self._choices:
            return pa.array(_DRAWS[self._kind](random), self._type)
        if isinstance(self._choices, tuple) and self._kind is float:
            return pa.array(random.uniform(self._choices[0], self._choices[1], _BLOCK_ROWS).round(4), self._type)
        if isinstance(self._choices, range):
            drawn = random.integers(0, len(self._choices), _BLOCK_ROWS) * self._choices.step + self._choices.start
            return pa.array(drawn).cast(self._type)
        return pa.array(list(self._choices), self._type).take(random.integers(0, len(self._choices), _BLOCK_ROWS))


def _texts(random: np.random.Generator) -> Any:
    return np.char.add("value-", random.integers(0, 1_000, _BLOCK_ROWS).astype(str)).tolist()


def _times(random: np.random.Generator) -> Any:
    first_us = int(_FIRST_DAY.timestamp()) * 1_000_000
    return (first_us + random.integers(0, 365 * 86_400, _BLOCK_ROWS) * 1_000_000).astype("datetime64[us]")


_DRAWS: Mapping[Any, Any] = {
    int: lambda random: random.integers(0, 1_000_000, _BLOCK_ROWS),
    float: lambda random: random.uniform(0, 1_000, _BLOCK_ROWS).round(2),
    str: _texts,
    bool: lambda random: random.integers(0, 2, _BLOCK_ROWS).astype(bool),
    datetime: _times,
    date: lambda random: _times(random).astype("datetime64[D]"),
}
