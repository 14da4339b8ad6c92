"""The interfaces for users' code: processors, their contexts, punctuation, error handlers, metrics."""
