"""Tables made of records, their views, and aggregates of tables."""
