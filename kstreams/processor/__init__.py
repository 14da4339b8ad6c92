"""The topology and its live form, the task: operators, Processor API, punctuation. Knows neither threads nor Spark."""
