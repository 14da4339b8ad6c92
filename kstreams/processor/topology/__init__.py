"""Topologies as data: nodes, sub-topologies, task ids, layout on topics, description, fingerprint."""
