"""The catalogue of the log: topics, groups, offsets, transactions and schemas, in two copies."""
