"""Queries that a stream thread answers."""
