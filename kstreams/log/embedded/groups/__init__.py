"""Members of consumer groups in the processes of one machine; their groups are rows of the catalogue."""
