"""The column families of stores in RocksDB."""
