"""Compatibility of schemas: whether a reader with one schema can read records that were written with another."""
