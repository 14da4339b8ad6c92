"""The Spark engine: a topology on Structured Streaming."""
