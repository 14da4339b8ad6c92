"""What passes through Spark: rows, blocks of them between tasks, and what tasks report to the driver."""
