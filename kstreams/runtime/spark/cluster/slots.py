"""`task_slots`: how many tasks of Spark run at once."""

from __future__ import annotations

from pyspark.sql import SparkSession

_ALLOCATION = "spark.dynamicAllocation"
_UNBOUNDED = 2**31 - 1


def task_slots(session: SparkSession) -> int:
    """The cores that there are now; under dynamic allocation those that there may be: Spark adds them as tasks wait."""
    conf = session.conf
    if conf.get(f"{_ALLOCATION}.enabled", "false") != "true":
        return int(session.sparkContext.defaultParallelism)
    per_executor = int(conf.get("spark.executor.cores", "1")) // int(conf.get("spark.task.cpus", "1"))
    return int(conf.get(f"{_ALLOCATION}.maxExecutors", str(_UNBOUNDED))) * max(1, per_executor)
