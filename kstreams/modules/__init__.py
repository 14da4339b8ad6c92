"""The modules of the user: which one holds an application, and which ones it imports."""
