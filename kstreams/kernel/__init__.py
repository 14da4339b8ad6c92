"""The parts that every other package is made of: batches, clocks, durations, hashes."""
