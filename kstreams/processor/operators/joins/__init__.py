"""Joins of streams, of tables, and of streams with tables."""
