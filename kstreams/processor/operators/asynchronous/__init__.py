"""Async functions, and the event loop on which they run."""
