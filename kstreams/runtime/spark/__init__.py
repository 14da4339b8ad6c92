"""The Spark engine: lowers a topology to Structured Streaming; what it cannot say runs as our own tasks inside."""
