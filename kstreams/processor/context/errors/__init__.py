"""The reactions of a task to records that fail or are dropped."""
