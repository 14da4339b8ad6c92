"""The judge of the fault runs: a process of its own that shares no code with kstreams.

It writes the input, reads the topics with its own readers, and computes in plain Python what must be in them.
"""
