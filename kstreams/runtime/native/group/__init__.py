"""The group of an application's processes: which are in it, and which tasks each is given."""
