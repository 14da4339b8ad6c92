"""A page that shows an application at work: its files, and what it asks the server for."""
