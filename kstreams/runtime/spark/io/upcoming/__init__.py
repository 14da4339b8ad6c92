"""The numbers and times of upcoming records, which decide where a step ends."""
