"""Connect files: sources, transforms and sinks in a TOML file, which is an application like any other."""
