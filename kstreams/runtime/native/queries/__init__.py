"""Queries of state stores from outside the stream threads."""
