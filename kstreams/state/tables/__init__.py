"""Stores as Arrow tables, and SQL over them."""
