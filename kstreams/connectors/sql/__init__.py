"""SQL databases: a source of tables and queries, and a sink that keeps its offsets in the database of its rows."""
