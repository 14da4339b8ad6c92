"""Column regions: the part of a sub-topology behind a source that takes whole batches, with the results of single records.

An optimisation that nobody can see: records define what is right, and `plan` says for every source whether columns may
stand in for them, or why not.
"""

from kstreams.processor.columns.forms import Fold, Project

__all__ = ["Fold", "Project"]
