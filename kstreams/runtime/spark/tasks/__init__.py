"""The task path: native tasks inside Spark workers, step by step, with versioned state."""
