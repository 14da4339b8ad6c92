"""A stream as a DataFrame of Spark."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

from kstreams.dsl.handle import Handle

K = TypeVar("K")
V = TypeVar("V")


class StreamFrames(Handle, Generic[K, V]):
    """The way from `KStream` to DataFrames."""

    __slots__ = ()

    def to_dataframe(self, spark: Any = None, config: Mapping[str, Any] | None = None) -> Any:
        """The stream as a DataFrame of Spark: Spark's own operators over its sources, for a query of your own.

        Nothing runs before you run the DataFrame, as a batch if its sources are static, else as a stream: Spark keeps
        state and offsets, and its differences from Kafka Streams are those of the relational path (docs/spark.md). Rows
        of `from_dataframe` come straight from their DataFrames; topics are read from their beginning.

        Parameters
        ----------
        spark : SparkSession, optional
            The active one by default.
        config : Config or mapping, optional
            Where topics are (`bootstrap.servers` or `log.dir`), and `spark.kstreams.max.records` for each trigger.

        Returns
        -------
        DataFrame
            Columns `key` and `value` (typed where their types are known) and `timestamp`.

        Raises
        ------
        TopologyError
            When an operator has no form in DataFrames: names it and your line.

        Examples
        --------
        >>> import kstreams as ks
        >>> orders = ks.StreamsBuilder().stream("orders", key=str, value=int)
        >>> frame = orders.filter(ks.value > 100).to_dataframe(spark)  # doctest: +SKIP
        >>> query = frame.writeStream.toTable("large_orders")  # doctest: +SKIP
        """
        import_module("kstreams.spark")  # by name, since the DSL knows no engine; says what is missing for this one
        return import_module("kstreams.runtime.spark.dataframes").dataframe_of(self._graph, self._node, spark, config)
