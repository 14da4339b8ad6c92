"""The files of a partition: segments, index, head and lock, and the code that reads and writes them."""
