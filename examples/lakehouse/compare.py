"""Compares the lakehouse with SQL over the tables in Postgres: exit status 1 and the rows, where they differ.

DuckDB reads the lakehouse. Compare when `load.py` has ended, and the application has read its last changes.
"""

from __future__ import annotations

import sys
from collections import Counter

import duckdb
import psycopg
import pyarrow as pa
from app import CATALOG, LAKE, SHOP
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

Rows = Counter[tuple[object, ...]]

IN_LAKEHOUSE = {
    "orders": "SELECT id, product, category, quantity, amount, ordered_at FROM orders",
    "sales_by_hour": "SELECT category, hour, orders, quantity, amount FROM sales_by_hour",
}
IN_POSTGRES = {
    "orders": """
        SELECT orders.id, name, category, quantity, quantity * price, ordered_at
        FROM orders JOIN products ON products.id = product_id
    """,
    "sales_by_hour": """
        SELECT category, date_trunc('hour', ordered_at) AS hour, count(*), sum(quantity), sum(quantity * price)
        FROM orders JOIN products ON products.id = product_id
        GROUP BY category, hour
    """,
}
SHOWN = 10


def main() -> int:
    lakehouse = rows_in_lakehouse()
    postgres = rows_in_postgres()
    for table, rows in lakehouse.items():
        differences = [*(postgres[table] - rows).items(), *(rows - postgres[table]).items()]
        for row, count in differences[:SHOWN]:
            place = "Postgres" if postgres[table][row] >= count else "the lakehouse"
            print(f"{table}: only {place} has {row}")
        print(f"{table}: {f'{len(differences):,} differences' if differences else f'{rows.total():,} equal rows'}")
    return int(lakehouse != postgres)


def rows_in_lakehouse() -> dict[str, Rows]:
    catalog = load_catalog("default", **CATALOG)
    lake = duckdb.connect()
    lake.register("orders", DeltaTable(LAKE / "orders").to_pyarrow_dataset())
    lake.register("sales_by_hour", catalog.load_table("shop.sales_by_hour").scan().to_arrow())
    columns = {table: lake.sql(query).to_arrow_table().columns for table, query in IN_LAKEHOUSE.items()}
    return {
        table: Counter(zip(*map(pa.ChunkedArray.to_pylist, arrays), strict=True)) for table, arrays in columns.items()
    }


def rows_in_postgres() -> dict[str, Rows]:
    with psycopg.connect(SHOP, options="-c timezone=UTC") as shop:
        return {table: Counter(shop.execute(query).fetchall()) for table, query in IN_POSTGRES.items()}


if __name__ == "__main__":
    sys.exit(main())
