"""Diagrams of topologies: as data, as a Mermaid flowchart, and as an SVG picture."""
