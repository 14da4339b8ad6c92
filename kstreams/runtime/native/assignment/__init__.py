"""Assignment of active tasks, standby tasks and warm-ups to processes: pure functions."""
