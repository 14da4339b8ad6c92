"""`ks.spark`: functions that run a topology in a Spark session, create a session, and read tables as input."""

from __future__ import annotations

from kstreams.runtime.spark.cluster.session import require_pyspark
from kstreams.runtime.spark.cluster.session import suitable_session as session

require_pyspark()
from kstreams.runtime.spark.feeds.tables import delta, parquet  # noqa: E402
from kstreams.runtime.spark.run import SparkRun, start  # noqa: E402
from kstreams.runtime.spark.saved_state.step_stores import StepStores  # noqa: E402

__all__ = ["SparkRun", "StepStores", "delta", "parquet", "session", "start"]
