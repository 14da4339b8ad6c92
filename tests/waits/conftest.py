"""The Spark session of tests/spark, for extensions."""

from tests.spark.conftest import spark

__all__ = ["spark"]
