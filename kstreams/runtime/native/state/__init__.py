"""State on the local disk and in changelogs: locks, restore, rebuilds, global tables, task metadata."""
