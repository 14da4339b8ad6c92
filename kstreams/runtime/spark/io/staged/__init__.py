"""Steps whose rows are staged in the checkpoint until they are committed, and then published without a coordinator."""
