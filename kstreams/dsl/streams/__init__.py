"""`KStream`: a handle on a stream of records, and its joins."""
