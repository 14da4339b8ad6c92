"""A task: one sub-topology at work on one partition, from batches read to batches written."""
