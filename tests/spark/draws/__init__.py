"""Random topologies on random data, run in many ways that must not show: `python -m tests.spark.draws`."""
