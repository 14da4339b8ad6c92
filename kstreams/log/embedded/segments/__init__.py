"""Segments: the files of a partition, written and read."""
