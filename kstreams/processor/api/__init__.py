"""What users write against: processors, their contexts, punctuation, error handlers, metrics."""
