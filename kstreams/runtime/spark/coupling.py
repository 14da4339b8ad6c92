"""`Admission`: topics whose input is cut into steps together, since the tasks that read them depend on each other.

Tasks of different partition numbers depend on each other if they exchange records within a step, through repartition
topics or topics that the topology both writes and reads. Otherwise each partition number is cut by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from kstreams.kernel.timestamps import TimestampExtractor, keeps_valid_times
from kstreams.processor.topology.topology import SubTopology


class Admission(NamedTuple):
    """The rules by which the input of some topics is cut into steps.

    Parameters
    ----------
    topics : tuple of str
    across_partitions : bool
        True if all partitions are cut at the same position of the order; otherwise each partition number is cut by
        itself.
    by_time : bool
        True if the input is cut by time. If a function extracts the times of records, a step takes a share of each
        partition instead, since the driver would have to decode each record to know its time.
    """

    topics: tuple[str, ...]
    across_partitions: bool = True
    by_time: bool = True


def admissions(
    sub_topologies: Iterable[SubTopology],
    inputs: Mapping[int, Collection[str]],
    upstream: Mapping[int, Collection[int]],
    internal: Collection[str],
    default: TimestampExtractor | None,
) -> list[Admission]:
    """Return how the source topics of sub-topologies are cut into steps.

    Parameters
    ----------
    sub_topologies : iterable of SubTopology
    inputs : mapping of int to collection of str
        By sub-topology: the topics that it reads.
    upstream : mapping of int to collection of int
        By sub-topology: the sub-topologies that write some of these topics within a step.
    internal : collection of str
        The topics that are written within a step.
    default : callable or None
        The timestamp extractor of sources without one.
    """
    subs = {sub.id: sub for sub in sub_topologies}
    sources = {number: frozenset(inputs[number]).difference(internal) for number in subs}
    admissions = []
    for members in _coupled(sources, upstream):
        topics = tuple(sorted(frozenset().union(*(sources[number] for number in members))))
        across = any(members.intersection(upstream[number]) for number in members)
        nodes = [node for number in members for node in subs[number].sources]
        by_time = all(keeps_valid_times(node.timestamp_extractor or default) for node in nodes)
        if topics:
            admissions.append(Admission(topics, across, by_time))
    return admissions


def _coupled(sources: Mapping[int, frozenset[str]], upstream: Mapping[int, Collection[int]]) -> list[set[int]]:
    """Group the sub-topologies that share a source topic, or of which one reads the output of another."""
    groups: list[set[int]] = []
    for number in sources:
        neighbours = {other for other in sources if sources[other] & sources[number]}
        neighbours |= {number, *sources.keys() & upstream[number]}
        joined_groups = [group for group in groups if group & neighbours]
        groups = [group for group in groups if group not in joined_groups] + [neighbours.union(*joined_groups)]
    return groups
