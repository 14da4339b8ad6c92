"""The layer below stores that live in memory alone."""
