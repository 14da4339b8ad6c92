"""Stores as tables: Arrow, and SQL over it."""
