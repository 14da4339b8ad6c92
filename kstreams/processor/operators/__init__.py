"""What each operator does: one file per family, bound into closures by a task."""
