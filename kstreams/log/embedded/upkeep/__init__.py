"""Upkeep of the log: retention, compaction, verification and repair."""
