"""Where checkpoints lie: paths and URIs, and whole objects read, written and published there."""
