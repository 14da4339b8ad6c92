"""Column regions: the part of a sub-topology after a source that processes whole batches as Arrow columns.

A region ends at sinks, at aggregations, and at the first operator that takes records one by one. It is an optimisation
without effect on results: the record form of each operator defines them, and `plan_regions` plans a region after a
source only if columns give the same results. Modules that load Arrow are imported one by one, so that declaring a
topology stays cheap.
"""

from kstreams.processor.columns.forms import AggregateForm, BatchForm, LookupForm, ProjectForm, SessionForm

__all__ = ["AggregateForm", "BatchForm", "LookupForm", "ProjectForm", "SessionForm"]
