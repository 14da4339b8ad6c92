"""Arrow tables, data frames and functions that return batches as sources."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kstreams as ks
from kstreams.connectors import Source
from kstreams.errors import ConnectorError
from kstreams.testing.connectors import Order, SourceContract, order_batch, read_all
from tests.connectors.running import copy_in, ids_in, log_with_topics

ROWS = order_batch(range(25_000)).values
TABLE = pa.Table.from_struct_array(ROWS)

FORMS: dict[str, Callable[[], Any]] = {
    "table": lambda: TABLE,
    "polars": lambda: pl.from_arrow(TABLE),
    "pandas": TABLE.to_pandas,
    "function of a table": lambda: lambda: TABLE,
    "function of a reader": lambda: lambda: TABLE.to_reader(max_chunksize=7_000),
    "function of batches": lambda: lambda: iter(TABLE.to_batches(max_chunksize=7_000)),
}


class TestArrow(SourceContract):
    def source(self, folder: Path) -> Source:
        return ks.sources.arrow(TABLE, Order, key="id")

    def rows(self, folder: Path) -> list[Any]:
        return ROWS.to_pylist()


@pytest.mark.parametrize("form", FORMS)
def test_each_form_has_the_same_rows_and_is_read_once(form: str, tmp_path: Path) -> None:
    with log_with_topics(tmp_path) as log:
        for _ in range(2):
            copy_in(log, ks.sources.arrow(FORMS[form](), Order, key="id"))
            assert ids_in(log) == list(range(25_000))


def test_rows_that_are_added_at_the_end_are_read_by_the_next_run(tmp_path: Path) -> None:
    with log_with_topics(tmp_path) as log:
        for count in (10, 12_345):
            copy_in(log, ks.sources.arrow(TABLE.slice(0, count), Order, key="id"))
            assert ids_in(log) == list(range(count))


def test_dicts_have_all_columns_and_keys_of_text() -> None:
    frame = pd.DataFrame({"symbol": [7, 8], "price": [1.5, 2.5], "at": pd.to_datetime([1, 2], unit="ms", utc=True)})
    (batch,) = read_all(ks.sources.arrow(frame, key="symbol", timestamp="at"), "rows")
    assert batch.keys is not None
    assert batch.timestamps is not None
    assert batch.keys.to_pylist() == ["7", "8"]
    assert [row["price"] for row in batch.values.to_pylist()] == [1.5, 2.5]
    assert batch.timestamps.cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist() == [1, 2]


def test_a_source_can_be_pickled() -> None:
    for data in (TABLE, pl.from_arrow(TABLE), table):
        source = pickle.loads(pickle.dumps(ks.sources.arrow(data)))
        assert sum(len(batch.values) for batch in read_all(source, "rows")) == 25_000


def table() -> pa.Table:
    return TABLE


def test_what_is_no_table_and_a_column_that_is_absent_are_errors() -> None:
    with pytest.raises(ConnectorError, match="list is no table: pass an Arrow table, a Polars or pandas frame"):
        ks.sources.arrow([1, 2])
    with pytest.raises(ConnectorError, match="the table has no column 'at'; it has id, name, amount"):
        read_all(ks.sources.arrow(TABLE, timestamp="at"), "rows")
