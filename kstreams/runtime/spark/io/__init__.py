"""What the Spark engine reads and writes outside Spark: the log as a data source, sinks, offset ranges."""
