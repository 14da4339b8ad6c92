"""Input and output of the Spark engine outside Spark: the log as a data source, sinks, offset ranges."""
