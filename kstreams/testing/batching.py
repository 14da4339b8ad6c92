"""When records may run through a topology as batches, with the same output per topic as one by one. Pure logic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kstreams.processor.topology.nodes import SubTopology, processor_nodes


def batches_keep_order(sub_topologies: Sequence[SubTopology]) -> bool:
    """Whether every output topic gets the same rows in the same order, however its input is cut into batches.

    Within one sub-topology it always does. Where a topic leads from one sub-topology into the next, a batch passes the
    first one as a whole before the next begins; that shows only where branches meet again, or where a processor follows
    the stream time, which all sub-topologies of a test driver share.
    """
    if not _fed_back(sub_topologies):
        return True
    return not any([_meets(sub_topologies), _chooses_topics(sub_topologies), _has_processors(sub_topologies)])


def _written(sub_topology: SubTopology) -> set[str]:
    return {sink.topic for sink in sub_topology.sinks if isinstance(sink.topic, str)}


def _read(sub_topology: SubTopology) -> set[str]:
    return {topic for source in sub_topology.sources for topic in source.topics}


def _fed_back(sub_topologies: Sequence[SubTopology]) -> set[str]:
    """The topics that the topology both writes and reads."""
    return set().union(*map(_written, sub_topologies)) & set().union(*map(_read, sub_topologies))


def _meets(sub_topologies: Sequence[SubTopology]) -> bool:
    """Whether a fed-back topic is read beside another one, or two sub-topologies write the same topic."""
    fed_back = _fed_back(sub_topologies)
    beside = any(_read(part) & fed_back and len(_read(part)) > 1 for part in sub_topologies)
    writers = Counter(topic for part in sub_topologies for topic in _written(part))
    return beside or any(count > 1 for count in writers.values())


def _chooses_topics(sub_topologies: Sequence[SubTopology]) -> bool:
    return any(callable(sink.topic) for part in sub_topologies for sink in part.sinks)


def _has_processors(sub_topologies: Sequence[SubTopology]) -> bool:
    return any(True for part in sub_topologies for _ in processor_nodes(part))
