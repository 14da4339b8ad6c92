"""The Spark session, its jars, and submission to a cluster."""
