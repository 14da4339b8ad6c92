"""The columnar part of a task: which region begins at a source, and its live form."""
