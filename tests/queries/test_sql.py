"""SQL over stores by itself: which names it knows, what it gives, and what it may take."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from kstreams.errors import StateError
from kstreams.state.tables.sql import _SETTINGS, answer

STORES = {
    "counts": pa.table({"key": ["a", "b"], "value": [1, 2]}),
    "orders": pa.table({"key": ["a"], "value": [7], "value_1": [8]}),
    "my.store-1": pa.table({"key": ["c"], "value": [3]}),
    "select": pa.table({"key": ["d"], "value": [4]}),
    "Twice": pa.table({"key": ["e"], "value": [5]}),
    "twice": pa.table({"key": ["f"], "value": [6]}),
}


def asked(query: str) -> pa.Table:
    return answer(query, STORES, STORES.__getitem__)


@pytest.mark.parametrize("name", ["counts", "COUNTS", '"counts"', '"my.store-1"', '"select"'])
def test_any_name_of_a_store_stands_in_quotes(name: str) -> None:
    assert asked(f"select key from {name}").num_rows > 0


def test_stores_that_differ_in_case_alone_are_no_two_tables() -> None:
    with pytest.raises(StateError, match="Twice and twice are one name in SQL"):
        asked('select * from "twice"')


def test_columns_of_one_name_are_told_apart() -> None:
    query = "select counts.value, orders.* exclude key, orders.value from counts join orders using (key)"
    assert asked(query).to_pylist() == [{"value": 1, "value_2": 7, "value_1": 8, "value_3": 7}]


@pytest.mark.parametrize(
    ("query", "said"), [("", "0 statements"), (";", "0 statements"), ("select 1; select 2", "2 statements")]
)
def test_a_query_is_one_select(query: str, said: str) -> None:
    with pytest.raises(StateError, match=said):
        asked(query)


def test_what_memory_does_not_hold_is_refused_and_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kstreams.state.tables.sql._SETTINGS", {**_SETTINGS, "memory_limit": "50MB"})
    with pytest.raises(StateError, match="Memory"):
        asked("select * from range(20000000) t(i) order by hash(i)")
    assert list(tmp_path.iterdir()) == []
