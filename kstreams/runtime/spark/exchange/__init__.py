"""The data that passes through Spark: rows, blocks of rows between tasks, and reports of tasks to the driver."""
