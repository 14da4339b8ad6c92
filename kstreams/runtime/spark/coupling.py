"""Coupling: which topics are admitted together, since tasks that read them depend on each other. Pure.

Tasks of different partition numbers depend on each other by what they write within a step: repartition topics, and
topics that the topology both writes and reads. Where there is none, each partition number is cut for itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from kstreams.kernel.timestamps import TimestampExtractor, keeps_valid_times
from kstreams.processor.topology.topology import SubTopology


class Admission(NamedTuple):
    """How the steps are cut for some topics.

    Parameters
    ----------
    topics : tuple of str
    across_partitions : bool
        Whether all partitions are cut at one place of the order; else each partition number is, for itself.
    by_time : bool
        Whether they are cut by time. Where a function tells the times of records, each partition gives a share of its
        rows instead: to know the times, each record would have to be read and decoded before the step.
    whole_moments : bool
        Whether the records of one moment stay in one step, even if they are more than it should take. Natively, what
        follows from them is put in order when all of it is there: by tasks that write again what was repartitioned, or
        read it beside another topic.
    """

    topics: tuple[str, ...]
    across_partitions: bool = True
    by_time: bool = True
    whole_moments: bool = False


def admissions(
    sub_topologies: Iterable[SubTopology],
    inputs: Mapping[int, Collection[str]],
    upstream: Mapping[int, Collection[int]],
    written_within: Collection[str],
    default: TimestampExtractor | None,
) -> list[Admission]:
    """How the source topics of some sub-topologies are admitted.

    Parameters
    ----------
    sub_topologies : iterable of SubTopology
    inputs : mapping of int to collection of str
        By sub-topology: the topics that it reads.
    upstream : mapping of int to collection of int
        By sub-topology: which ones write some of these topics within a step.
    written_within : collection of str
        The topics that are written within a step.
    default : callable or None
        The timestamp extractor of sources that have none.
    """
    subs = {sub.id: sub for sub in sub_topologies}
    sources = {number: frozenset(inputs[number]).difference(written_within) for number in subs}
    pairs = []
    for members in _coupled(sources, upstream):
        topics = tuple(sorted(frozenset().union(*(sources[number] for number in members))))
        across = any(members.intersection(upstream[number]) for number in members)
        nodes = [node for number in members for node in subs[number].sources]
        by_time = all(keeps_valid_times(node.timestamp_extractor or default) for node in nodes)
        if topics:
            pairs.append(Admission(topics, across, by_time, _is_deep(members, inputs, upstream)))
    return pairs


def _coupled(sources: Mapping[int, frozenset[str]], upstream: Mapping[int, Collection[int]]) -> list[set[int]]:
    """The sub-topologies in groups: one reads a topic of another one, or what it writes."""
    groups: list[set[int]] = []
    for number in sources:
        near = {other for other in sources if sources[other] & sources[number]}
        near |= {number, *sources.keys() & upstream[number]}
        touched = [group for group in groups if group & near]
        groups = [group for group in groups if group not in touched] + [near.union(*touched)]
    return groups


def _is_deep(
    members: Collection[int], inputs: Mapping[int, Collection[str]], upstream: Mapping[int, Collection[int]]
) -> bool:
    """Whether one of these reads what is written within a step beside another topic, or writes again what follows."""
    readers = {number for number in members if upstream[number]}
    return any(len(inputs[number]) > 1 or any(number in upstream[other] for other in members) for number in readers)
