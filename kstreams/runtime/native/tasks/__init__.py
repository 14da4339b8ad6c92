"""The tasks of a process: which thread runs which, which are restored, and which are kept as standbys."""
