"""A topology as a PySpark program: expressions as columns, aggregations and joins as Spark's own, and nothing else."""
