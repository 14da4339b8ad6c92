"""Compatibility of schemas: whether a reader with one schema can read records of another, by type of schema."""
