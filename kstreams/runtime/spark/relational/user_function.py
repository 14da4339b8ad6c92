"""`UserFunction`: a Python function of the user inside an Arrow UDF; errors name operator, line and record."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from kstreams.errors import KStreamsError, ProcessingError
from kstreams.processor.operators.first_warning import no_warning
from kstreams.processor.operators.stateless import check_first_result, iterable_result, pair_result
from kstreams.runtime.spark.relational.functions import F
from kstreams.serdes import Serde

if TYPE_CHECKING:
    from pyspark.sql import Column

_TOPICS = 1 << 20
_PARTITIONS = 1 << 20


def origin_column(number: int, topics: Sequence[str]) -> Column:
    """Return a column that numbers the topic partition of each row; rows of one partition stay in order."""
    first, *other_codes = [((number * _TOPICS) + _code(topic)) * _PARTITIONS for topic in topics]
    base = F.lit(first)
    for topic, code in zip(topics[1:], other_codes, strict=True):
        base = F.when(F.col("topic") == topic, code).otherwise(base)
    return (base + F.col("partition")).cast("bigint")


def _code(topic: str) -> int:
    return zlib.crc32(topic.encode()) % _TOPICS


RECORD_ID = ("origin", "offset")
"""The columns after the arguments: the partition and the offset of the record."""


class TypedColumn(NamedTuple):
    """The decoder of a column that is already typed, in place of its serde."""

    serde: Serde

    def decode_rows(self, column: pa.Array) -> list[Any]:
        """Return the values of a typed column."""
        values: list[Any] = column.to_pylist()
        return values

    def deserialize(self, data: bytes) -> Any:
        """Deserialize a single value, which is not typed."""
        return self.serde.deserialize(data)


class UserFunction(NamedTuple):
    """A function, with the data that calls and errors need.

    Parameters
    ----------
    function : callable
    name, declared_at : str
        The name of the operator, and the line of the program that declares it.
    reads : tuple of Serde or TypedColumn
        The decoder of each argument.
    topics : tuple of str
        The topics that rows may come from.
    """

    function: Callable[..., Any]
    name: str
    declared_at: str
    reads: tuple[Serde | TypedColumn, ...]
    topics: tuple[str, ...]

    def results(self, *columns: pa.Array) -> list[Any]:
        """Return the results for all rows. The columns are the arguments, which `reads` decodes, then `RECORD_ID`."""
        *arguments, origins, offsets = columns
        decoded = (serde.decode_rows(column) for serde, column in zip(self.reads, arguments, strict=True))
        values: list[Any] = []
        function = self.function
        append = values.append
        try:
            for row in zip(*decoded, strict=True):
                append(function(*row))
        except KStreamsError:
            raise
        except Exception as error:
            raise self._failed(error, origins[len(values)].as_py(), offsets[len(values)].as_py()) from error
        return values

    def of_record(self, record_id: tuple[int, int], serialized: tuple[bytes | None, ...], *arguments: object) -> object:
        """Return the result for one record: `serialized` are the arguments that `reads` decodes, the others follow."""
        decoded = [
            None if raw is None else serde.deserialize(raw) for serde, raw in zip(self.reads, serialized, strict=True)
        ]
        try:
            return self.function(*decoded, *arguments)
        except KStreamsError:
            raise
        except Exception as error:
            raise self._failed(error, *record_id) from error

    def listed(self, warn_of_text: Callable[[], None] = no_warning) -> UserFunction:
        """Return the variant for a function of any number of results: each list is complete before the next row."""
        function = self.function

        def call_directly() -> None:
            nonlocal function
            function = self.function

        function = check_first_result(self.function, warn_of_text, call_directly)
        return self._replace(function=lambda *row: list(iterable_result(function(*row), "values")))

    def paired(self) -> UserFunction:
        """Return the variant for a function that returns a key and a value."""
        function = self.function
        return self._replace(function=lambda *row: pair_result(function(*row)))

    def paired_lists(self) -> UserFunction:
        """Return the variant for a function that returns any number of keys and values."""
        function = self.function
        return self._replace(
            function=lambda *row: list(map(pair_result, iterable_result(function(*row), "(key, value) pairs")))
        )

    def _failed(self, error: Exception, origin: int, offset: int) -> ProcessingError:
        return ProcessingError(self.name, self.declared_at, self._record(origin, offset), error)

    def _record(self, origin: int, offset: int) -> str:
        """Return the topic, partition and offset of a record as text."""
        number, partition = divmod(origin % (_TOPICS * _PARTITIONS), _PARTITIONS)
        topic = next((topic for topic in self.topics if _code(topic) == number), None)
        return "(no record)" if topic is None else f"{topic}-{partition}@{offset}"
