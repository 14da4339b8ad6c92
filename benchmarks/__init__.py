"""What kstreams costs, measured: `python -m benchmarks [name ...]` runs the modules here and records what they say."""
