"""Aggregates per key and window of event time."""
