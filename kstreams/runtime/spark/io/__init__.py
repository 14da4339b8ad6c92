"""What the Spark engine reads and writes: the log as a data source, sinks, offset ranges."""
