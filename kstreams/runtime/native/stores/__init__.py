"""Queries of stores from outside the stream threads: read methods, and the processes that have each partition."""
