"""`SourceContract` and `SinkContract`: tests that every source and every sink passes.

A subclass says how the connector is made and what the other system holds. pytest then runs the inherited tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from kstreams.connectors.api import Position, Sink, SinkBatch, SinkTask, SinkWriter, Source, SourceBatch
from kstreams.connectors.columns import ValueColumns
from kstreams.errors import FencedError
from kstreams.kernel.decoders import decode_json
from kstreams.serdes import serde_of

_MAX_IDLE_READS = 50


class Order(msgspec.Struct):
    """The values that a `SinkContract` writes."""

    id: int
    name: str
    amount: float


class SourceContract:
    """Tests of a source. A subclass, whose name begins with `Test`, defines `source` and `rows`.

    Examples
    --------
    >>> from kstreams.connectors import Source
    >>> class TestMySource(SourceContract):
    ...     def source(self, folder: Path) -> Source:
    ...         raise NotImplementedError("return the source, with some rows to read")
    ...
    ...     def rows(self, folder: Path) -> list[object]:
    ...         raise NotImplementedError("return the values of all rows, as dicts, in any order")
    """

    def source(self, folder: Path) -> Source:
        """Return a source with at least 20 rows. It reads from the folder, or from another system."""
        raise NotImplementedError

    def rows(self, folder: Path) -> list[Any]:
        """Return the values that the source has."""
        raise NotImplementedError

    def test_all_rows_are_read_once(self, tmp_path: Path) -> None:
        source = self.source(tmp_path)
        batches = [batch for split in source.splits() for batch in read_all(source, split)]
        rows = [row for batch in batches for row in batch.values.to_pylist()]
        assert _sorted(rows) == _sorted(self.rows(tmp_path))

    def test_the_columns_of_a_batch_have_the_same_length(self, tmp_path: Path) -> None:
        source = self.source(tmp_path)
        for batch in (batch for split in source.splits() for batch in read_all(source, split)):
            for column in (batch.keys, batch.timestamps):
                assert column is None or len(column) == len(batch.values)

    def test_the_names_of_splits_stay(self, tmp_path: Path) -> None:
        source = self.source(tmp_path)
        assert sorted(source.splits()) == sorted(source.splits())

    def test_from_each_position_exactly_the_rest_is_read(self, tmp_path: Path) -> None:
        source = self.source(tmp_path)
        for split in source.splits():
            batches = read_all(source, split)
            for number, batch in enumerate(batches):
                rest = [row for later in batches[number + 1 :] for row in later.values.to_pylist()]
                position = decode_json(msgspec.json.encode(batch.position))
                again = [row for later in read_all(source, split, position) for row in later.values.to_pylist()]
                assert again == rest

    def test_a_committed_position_does_not_change_what_comes_next(self, tmp_path: Path) -> None:
        source = self.source(tmp_path)
        for split in source.splits():
            with closing(source.open(split, None)) as reader:
                rows = []
                for batch in _batches(reader):
                    rows.extend(batch.values.to_pylist())
                    reader.committed(batch.position)
            with closing(source.open(split, batch.position)) as reader:
                assert [row for batch in _batches(reader) for row in batch.values.to_pylist()] == []


class SinkContract:
    """Tests of a sink of `Order` with keys of type int. A subclass, whose name begins with `Test`, defines two methods.

    Examples
    --------
    >>> from kstreams.connectors import Sink
    >>> class TestMySink(SinkContract):
    ...     def sink(self, folder: Path) -> Sink:
    ...         raise NotImplementedError("return a sink of an empty target")
    ...
    ...     def orders(self, folder: Path) -> list[Order]:
    ...         raise NotImplementedError("return the rows that a reader of the target sees, in any order")
    """

    def sink(self, folder: Path) -> Sink:
        """Return a sink. Its target is empty in each folder."""
        raise NotImplementedError

    def orders(self, folder: Path) -> list[Order]:
        """Return the rows of the target, without the sink's own code. Empty if there is no table yet."""
        raise NotImplementedError

    def test_rows_are_visible_after_the_commit_and_not_before(self, tmp_path: Path) -> None:
        with closing(self._open(tmp_path)) as writer:
            assert writer.next_offset() is None
            writer.write(order_batch(range(10)))
            assert list(writer.flush()) == []
            assert self.sink(tmp_path).at_least_once or self._ids(tmp_path) == []
            writer.commit(10)
            assert self._ids(tmp_path) == list(range(10))

    def test_values_arrive_as_they_are(self, tmp_path: Path) -> None:
        with closing(self._open(tmp_path)) as writer:
            writer.next_offset()
            _commit(writer, order_batch(range(3)), 3)
        assert sorted(self.orders(tmp_path), key=lambda order: order.id) == [order_of(number) for number in range(3)]

    def test_the_target_knows_the_offset_of_each_partition(self, tmp_path: Path) -> None:
        if self.sink(tmp_path).at_least_once:
            pytest.skip("the sink keeps no offsets")
        for partition, end in ((0, 5), (1, 7)):
            with closing(self._open(tmp_path, partition)) as writer:
                writer.next_offset()
                ids = range(100 * partition, 100 * partition + end)
                _commit(writer, order_batch(ids, partition=partition, first_offset=0), end)
        for partition, next_offset in ((0, 5), (1, 7), (2, None)):
            with closing(self._open(tmp_path, partition)) as writer:
                assert writer.next_offset() == next_offset

    def test_after_a_crash_the_rows_are_written_once(self, tmp_path: Path) -> None:
        sink = self.sink(tmp_path)
        if sink.at_least_once:
            pytest.skip("a crash repeats rows")
        with closing(self._open(tmp_path)) as writer:
            writer.next_offset()
            _commit(writer, order_batch(range(5)), 5)
            writer.write(order_batch(range(5, 9)))
            writer.flush()
        with closing(self._open(tmp_path)) as writer:
            offset = writer.next_offset()
            assert offset == 5
            _commit(writer, order_batch(range(offset, 12)), 12)
        assert self._ids(tmp_path) == list(range(12))

    def test_a_writer_that_was_replaced_cannot_commit(self, tmp_path: Path) -> None:
        if self.sink(tmp_path).at_least_once:
            pytest.skip("the sink keeps no offsets")
        with closing(self._open(tmp_path)) as former, closing(self._open(tmp_path)) as present:
            assert former.next_offset() is None
            assert present.next_offset() is None
            _commit(present, order_batch(range(5)), 5)
            with pytest.raises(FencedError):
                _commit(former, order_batch(range(4)), 4)
            _commit(present, order_batch(range(5, 8)), 8)
        assert self._ids(tmp_path) == list(range(8))

    def _open(self, folder: Path, partition: int = 0) -> SinkWriter:
        value_type = ValueColumns(serde_of(Order)).type
        return self.sink(folder).open(SinkTask("contract-orders", "orders", partition, value_type))

    def _ids(self, folder: Path) -> list[int]:
        return sorted(order.id for order in self.orders(folder))


def order_of(number: int) -> Order:
    """Return the order with an id.

    Examples
    --------
    >>> order_of(3)
    Order(id=3, name='order 3', amount=4.5)
    """
    return Order(number, f"order {number}", number * 1.5)


def order_batch(ids: Sequence[int], *, partition: int = 0, first_offset: int | None = None) -> SinkBatch:
    """Return the orders with these ids. By default the offset of each is its id."""
    orders = [order_of(number) for number in ids]
    begin = (ids[0] if ids else 0) if first_offset is None else first_offset
    offsets = np.arange(begin, begin + len(ids), dtype=np.int64)
    values = pa.array([msgspec.structs.asdict(order) for order in orders], ValueColumns(serde_of(Order)).type)
    times = pa.array([1_700_000_000_000 + number for number in ids], pa.int64())
    return SinkBatch(partition, offsets, pa.array(list(ids), pa.int64()), values, times)


def read_all(source: Source, split: str, position: Position | None = None) -> list[SourceBatch]:
    """Return all batches of a split from a position on."""
    with closing(source.open(split, position)) as reader:
        return list(_batches(reader))


def _batches(reader: Any) -> Iterator[SourceBatch]:
    idle_reads = 0
    while idle_reads < _MAX_IDLE_READS:
        batch = reader.read()
        if batch is None:
            return
        idle_reads = 0 if len(batch.values) else idle_reads + 1
        yield batch
        if batch.is_end:
            return


def _commit(writer: SinkWriter, batch: SinkBatch, next_offset: int) -> None:
    writer.write(batch)
    assert list(writer.flush()) == []
    writer.commit(next_offset)


def _sorted(rows: list[Any]) -> list[Any]:
    return sorted(rows, key=repr)
