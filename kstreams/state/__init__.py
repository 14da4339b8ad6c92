"""State stores: what a task remembers, in memory or in RocksDB, and what of it goes to the changelog."""
