"""Reasons and differences that several operators share, in words."""

from __future__ import annotations

LATE = (
    "the watermark moves between batches and for all partitions together, so a record that comes too late may still "
    "be {done}, and one of a partition that gets its records later may not; what is dropped there is not counted"
)
"""Of the final results of windows, with `done` for what happens to a record."""

ORDER = (
    "what several partitions write is sorted by the records' own times, not by the stream times of tasks, so that "
    "other records may be late behind it"
)
"""Of what stands in a repartition topic."""

UNCOUNTED = "records that have no key, or of which a function needs a value that is not there, are dropped uncounted"
"""Of operators that have no use for them."""

CHANGE_STREAM = "a change stream with tombstones has no form in Spark"

OUT_OF_ORDER = "beside a repartition topic, a record out of order may come after later ones of the other topic"
"""In tasks: a step takes all topics up to one time, but a repartitioned record may be older than that."""
