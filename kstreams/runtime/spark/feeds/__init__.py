"""DataFrames as sources: each row becomes a record of a topic exactly once."""
