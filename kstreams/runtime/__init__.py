"""The engines: siblings that never import each other."""
