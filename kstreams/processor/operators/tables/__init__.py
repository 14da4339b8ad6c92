"""Tables, their views, and aggregates of tables."""
