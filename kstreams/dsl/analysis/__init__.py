"""Facts about a logical graph, each computed by a pure function: operators set no flags on each other."""
