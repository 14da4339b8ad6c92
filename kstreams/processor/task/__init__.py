"""A task: one sub-topology on one partition, from the batches it reads to the batches it writes."""
