"""The server of queries: what it answers, to whom, and how it ends."""
