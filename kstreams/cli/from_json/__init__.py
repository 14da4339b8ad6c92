"""JSON as a person writes it, made into the values that a schema describes."""
