"""Storage of checkpoints at paths and URIs: whole objects are read, written and published."""
