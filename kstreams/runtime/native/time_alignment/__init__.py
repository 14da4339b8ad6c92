"""Time alignment: which records may be processed next, where several tasks write one repartition topic."""
