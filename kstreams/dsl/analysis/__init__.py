"""Facts about a logical graph, each computed by a pure function: never flags that operators set on each other."""
