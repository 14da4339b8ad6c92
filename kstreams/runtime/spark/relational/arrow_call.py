"""`arrow_call`: columns computed in Python, whole Arrow arrays at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from kstreams.runtime.spark.relational.functions import F

if TYPE_CHECKING:
    from pyspark.sql import Column


def arrow_call(
    returned: str, work: Callable[..., pa.Array], fixed_arguments: tuple[object, ...], *columns: Column
) -> Column:
    """Compute a column in Python, whole Arrow arrays at a time, and once for each row.

    Parameters
    ----------
    returned : str
        The Spark type of the result.
    work : callable
        `work(*arguments, *arrays) -> array`; like `arguments`, it is sent to the workers by value if it is the user's.
    arguments : tuple
        Functions, types and serdes of the user; they are sent to the workers by value.
    """
    from kstreams.runtime.spark.cluster.shipping import pack, unpack  # loads Spark

    packed = pack((work, fixed_arguments))

    def call(*arrays: pa.Array) -> pa.Array:
        called, arguments = unpack(packed)
        result: pa.Array = called(*arguments, *arrays)
        return result

    # Deterministic columns are computed again for each filter after them.
    return F.arrow_udf(call, returned).asNondeterministic()(*columns)
