"""What lies ahead in a home of topics: how many records, and their times."""
