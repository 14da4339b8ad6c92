"""`arrow_call`: a column that a Python function computes from whole Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from kstreams.runtime.spark.relational.functions import F

if TYPE_CHECKING:
    from pyspark.sql import Column


def arrow_call(returned: str, work: Callable[..., pa.Array], arguments: tuple[object, ...], *columns: Column) -> Column:
    """Return a column that a Python function computes once for each row, from whole Arrow arrays.

    Parameters
    ----------
    returned : str
        The Spark type of the result.
    work : callable
        `work(*arguments, *arrays) -> array`. It is sent to the workers by value if it belongs to the user.
    arguments : tuple
        Functions, types and serdes of the user, which are sent to the workers by value.
    *columns : Column
        The columns whose values are the arrays.
    """
    from kstreams.runtime.spark.cluster.shipping import pack, unpack  # loads Spark

    packed = pack((work, arguments))

    def call(*arrays: pa.Array) -> pa.Array:
        function, first_arguments = unpack(packed)
        result: pa.Array = function(*first_arguments, *arrays)
        return result

    # Spark computes a deterministic column again for each filter after it.
    return F.arrow_udf(call, returned).asNondeterministic()(*columns)
