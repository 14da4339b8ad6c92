"""A stream thread: its tasks, their input and output, commits, and bounded runs."""
