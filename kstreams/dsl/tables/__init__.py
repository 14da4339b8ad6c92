"""Handles of tables: `KTable`, `GlobalKTable` and `KGroupedTable`, and their joins."""
