"""Topologies drawn: as data, as a Mermaid flowchart, and as a picture whose layout is our own."""
