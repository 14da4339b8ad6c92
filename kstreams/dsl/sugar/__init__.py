"""Operators that Kafka Streams does not have, composed of processors, aggregations and filters."""
