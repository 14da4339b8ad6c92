"""Files, forks and signals of the operating system, and garbage collection."""
