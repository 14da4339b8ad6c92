"""Column regions: the part of a sub-topology behind a source that takes whole batches at once.

It ends at sinks, at aggregations, and at the first step that takes records one by one: rows go on from there. An
optimisation that nobody can see: records define what is right, and `plan` says for every source whether columns may
stand in for them, or why not. What loads Arrow is imported from its own module, so that declaring costs little.
"""

from kstreams.processor.columns.forms import AggregateForm, BatchForm, LookupForm, ProjectForm

__all__ = ["AggregateForm", "BatchForm", "LookupForm", "ProjectForm"]
