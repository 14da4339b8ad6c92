"""Aggregates per key, as rows and as columns, and how their updates are emitted."""
