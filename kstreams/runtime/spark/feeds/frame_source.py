"""`frame_source`: the rows of a DataFrame as the source of a relational query, without a topic."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kstreams.dsl.frame_rows import CHANGES
from kstreams.errors import SerdeError, TopologyError
from kstreams.kernel.decoders import convert
from kstreams.processor.topology.feeds import Feed
from kstreams.runtime.spark.feeds.records import time_of
from kstreams.runtime.spark.relational.arrow_call import arrow_call
from kstreams.runtime.spark.relational.codecs import SQL_TYPES, encoded
from kstreams.runtime.spark.relational.frame import leaf_column
from kstreams.serdes import Serde
from kstreams.serdes.json_columns import JsonColumns


def frame_source(rows: DataFrame, feed: Feed) -> DataFrame:
    """Return records in the columns of a topic, and next to them the typed columns that need no decoding.

    Parameters
    ----------
    rows : DataFrame
        The rows of the feed.
    feed : Feed

    Raises
    ------
    TopologyError
        If the feed reads a change data feed, whose rows have an order.
    """
    if set(CHANGES) <= set(rows.columns):
        raise TopologyError(
            f"{feed} reads a change data feed, whose changes have an order that a DataFrame does not keep: run it by "
            "ks.spark.start"
        )
    columns = {name: F.col(f"`{name}`") for name in rows.columns}
    row = F.struct(*columns.values())
    leaves = {leaf_column("value"): row, **_typed_key(feed, columns), **_typed_fields(feed, columns)}
    times = F.unix_millis(F.current_timestamp()) if feed.timestamp is None else time_of(rows, feed.timestamp)
    return rows.select(
        F.lit(feed.topic).alias("topic"),
        F.lit(0).alias("partition"),
        F.lit(0).cast("bigint").alias("offset"),
        times.cast("bigint").alias("timestamp"),
        _serialized_key(feed, columns).alias("key"),
        arrow_call("binary", _encoded, (feed.row, feed.serdes[1]), row).alias("value"),
        F.lit(None).cast("array<struct<name: string, value: binary>>").alias("headers"),
        *(column.alias(name) for name, column in leaves.items()),
    )


def _typed_key(feed: Feed, columns: dict[str, Column]) -> dict[str, Column]:
    """Return the typed column of keys, if there are keys and Arrow has their type."""
    kind = feed.serdes[0].arrow_type
    return {} if feed.key is None or kind is None else {leaf_column("key"): columns[feed.key].cast(SQL_TYPES[kind])}


def _serialized_key(feed: Feed, columns: dict[str, Column]) -> Column:
    serde = feed.serdes[0]
    key = _typed_key(feed, columns)
    if feed.key is None:
        return F.lit(None).cast("binary")
    if not key:
        return arrow_call("binary", _encoded, (serde.type, serde), columns[feed.key])
    return encoded(serde, key[leaf_column("key")], SQL_TYPES[serde.arrow_type])


def _typed_fields(feed: Feed, columns: dict[str, Column]) -> dict[str, Column]:
    """Return the typed columns of the fields that expressions can read."""
    field_columns = {}
    for name, column in columns.items():
        try:
            kind = JsonColumns(feed.row, [name]).types[name]
        except SerdeError:
            continue
        field_columns[leaf_column("value", name)] = column.cast(SQL_TYPES[kind])
    return field_columns


def _encoded(kind: Any, serde: Serde, column: pa.Array) -> pa.Array:
    return serde.encode_rows(convert(column.to_pylist(), list[kind | None], strict=False))
