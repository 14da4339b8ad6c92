"""The Spark session of tests/spark, for windows."""

from tests.spark.conftest import spark

__all__ = ["spark"]
