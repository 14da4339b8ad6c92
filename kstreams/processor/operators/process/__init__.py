"""Users' processors as operators."""
