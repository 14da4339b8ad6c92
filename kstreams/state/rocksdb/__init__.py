"""The layer below stores that live in RocksDB."""
