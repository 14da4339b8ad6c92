"""The web page that shows an application at work: its files, and the routes that it reads."""
