"""Faults by the thousand: flipped bits, readers beside compaction. Each module is a command and prints its counts."""
