"""The base of all other packages: batches, clocks, durations, hashes."""
