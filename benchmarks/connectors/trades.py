"""`Trade`, the row of all measurements, and Arrow columns of many of them."""

from __future__ import annotations

from datetime import datetime

import msgspec
import numpy as np
import pyarrow as pa

PARTITIONS = 4
COLUMNS = "id int8 PRIMARY KEY, symbol text, price float8, quantity int4, at timestamptz"
_FIRST_US = 1_700_000_000_000_000


class Trade(msgspec.Struct):
    """A row of five fields, some 110 bytes of JSON."""

    id: int
    symbol: str
    price: float
    quantity: int
    at: datetime


def trades(first: int, count: int, ids: int) -> pa.StructArray:
    """Return rows. Ids begin again after `ids` rows, so that the later rows change the earlier ones."""
    numbers = np.arange(first, first + count)
    columns = {
        "id": pa.array(numbers % ids),
        "symbol": pa.array(np.char.add("S", (numbers % 50).astype(str))),
        "price": pa.array(numbers * 0.25),
        "quantity": pa.array(numbers % 1000),
        "at": pa.array(_FIRST_US + numbers * 1000, pa.timestamp("us", "UTC")),
    }
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))
