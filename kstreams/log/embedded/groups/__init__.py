"""Members of groups in the processes of one machine: the group lies in the catalogue, a file shows who lives."""
