"""Grouped, windowed and cogrouped streams: handles that end in an aggregation."""
