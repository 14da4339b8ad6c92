"""The catalogue: topics, groups, transactions and offsets, kept twice."""
