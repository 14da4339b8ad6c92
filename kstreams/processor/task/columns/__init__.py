"""The columnar part of a task: the plan of the region after each source, and the live region."""
