"""DataFrames as sources: their rows become the records of topics, each once."""
