"""`KTable` and its kin: handles on tables, and their joins."""
