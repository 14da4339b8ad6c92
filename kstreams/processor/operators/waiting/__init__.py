"""Operators whose records wait for the wall clock: retries, delays, throttles and schedules."""
