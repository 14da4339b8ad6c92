"""The operators of a topology: one module per family. A task binds each operator into a closure."""
