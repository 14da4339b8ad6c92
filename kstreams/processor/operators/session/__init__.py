"""Aggregates per key and session, by rows and by columns."""
