"""Rules of compatibility: whether readers of one schema can read what another wrote, type by type."""
