"""Topics: one interface (`Log`), two homes (the embedded log, Kafka)."""
