"""The group of an application's processes: its members, and the assignment of tasks to them."""
