"""The state that the steps of an application have left: exported, imported, asked."""
