"""Column regions: the part of a sub-topology behind a source that takes whole batches at once.

An optimisation that nobody can see: records define what is right, and `plan` says for every source whether columns may
stand in for them, or why not.
"""

from kstreams.processor.columns.forms import Fold, Project
from kstreams.processor.columns.plan import Plan, plan_regions
from kstreams.processor.columns.region import Region, live_regions

__all__ = ["Fold", "Plan", "Project", "Region", "live_regions", "plan_regions"]
