"""The parts of the query server that are independent of queries: connections, readers and the router."""
