"""Aggregates per key and session, as rows and as columns."""
