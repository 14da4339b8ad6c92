"""Steps whose rows are staged in the checkpoint until they count, and then published: no coordinator is needed."""
