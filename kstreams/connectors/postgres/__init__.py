"""PostgreSQL as a source: change data capture by logical replication with `pgoutput`."""
