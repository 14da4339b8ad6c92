"""Metrics of running applications for others: `prometheus` and `opentelemetry`."""
