"""Questions to state stores from outside the stream threads."""
