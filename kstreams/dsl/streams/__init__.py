"""Handles of streams: `KStream` and `BranchedKStream`, and the joins of streams."""
