"""What the driver measures of a run on Spark, and under which names it is read."""
