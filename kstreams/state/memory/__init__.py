"""The column family of stores in memory: it keeps no bytes."""
