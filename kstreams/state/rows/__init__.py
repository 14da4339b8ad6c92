"""Live rows over bytes: the collections that store kinds are made of."""
