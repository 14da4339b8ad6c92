"""Which process runs which tasks, keeps a standby of which, and warms up for which: pure functions."""
