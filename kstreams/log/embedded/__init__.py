"""The embedded log: topics in a folder of the local disk, shared by the processes of one machine."""
