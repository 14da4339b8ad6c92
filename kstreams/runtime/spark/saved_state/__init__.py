"""Export, import and queries of the state after a step."""
