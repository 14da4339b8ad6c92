"""The DSL: thin handles over a logical graph, analyses of that graph, and the rules that turn it into a topology."""
