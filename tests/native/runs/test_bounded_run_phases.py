"""When a bounded run is over: exactly when all that follows from its input has been processed and committed."""

from __future__ import annotations

from collections.abc import Collection

from kstreams.kernel.batch import TopicPartition
from kstreams.processor.topology.layout import Layout, lay_out
from kstreams.processor.topology.topology import InternalTopic, Topology
from kstreams.runtime.native.bounded_run import BoundedRun, Phase

IN, VIA, BACK = (TopicPartition(topic, 0) for topic in ("in", "app-via", "app-back"))


class Ends:
    """The ends of internal partitions, as they would stand in the log."""

    def __init__(self) -> None:
        self.at: dict[TopicPartition, int] = {}

    def __call__(self, sources: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {source: self.at.get(source, 0) for source in sources}


def chain(*, circle: bool = False) -> Layout:
    """in -> sub-topology 0 -> via -> sub-topology 1, which may write back to the first."""
    topics = ["in", "back"] if circle else ["in"]
    topology = Topology().add_source("a", topics, key=str, value=str).add_sink("b", "via", "a", key=str, value=str)
    topology.add_repartition_topic(InternalTopic("via", "repartition"))
    topology.add_source("c", "via", key=str, value=str)
    topology.add_sink("d", "back" if circle else "out", "c", key=str, value=str)
    if circle:
        topology.add_repartition_topic(InternalTopic("back", "repartition"))
    return lay_out(topology, "app", {"in": 1})


def bounds_of(layout: Layout, ends: Ends, *, until_end: bool = False) -> BoundedRun:
    return BoundedRun(layout, until_end, {IN: 10}, ends)


def report(
    bounds: BoundedRun, layout: Layout, sub: int, positions: dict[TopicPartition, int], ended: bool = False
) -> None:
    task = next(task for task in layout.tasks if task.id.sub_topology == sub)
    bounds.report(task.id, positions, ended)
    bounds.advance()


def test_a_run_is_over_when_the_last_stage_has_processed_what_the_first_wrote() -> None:
    layout, ends = chain(), Ends()
    bounds = bounds_of(layout, ends)
    report(bounds, layout, 1, {VIA: 0})
    assert bounds.phase(1) is Phase.OPEN  # nothing there, but the first stage may still write
    assert bounds.end_of(VIA, 1) is None
    ends.at[VIA] = 4
    report(bounds, layout, 0, {IN: 9})
    assert bounds.phase(0) is Phase.OPEN
    report(bounds, layout, 0, {IN: 10})
    assert bounds.phase(0) is Phase.DONE
    assert bounds.end_of(VIA, 1) == 4
    report(bounds, layout, 1, {VIA: 3})
    assert bounds.phase(1) is Phase.OPEN
    report(bounds, layout, 1, {VIA: 4})
    assert bounds.phase(1) is Phase.DONE


def test_until_end_tells_a_stage_that_its_input_is_over_only_when_it_is() -> None:
    layout, ends = chain(), Ends()
    bounds = bounds_of(layout, ends, until_end=True)
    report(bounds, layout, 0, {IN: 10})
    assert bounds.phase(0) is Phase.ENDING
    ends.at[VIA] = 2  # what the end of input released
    report(bounds, layout, 1, {VIA: 0})
    assert bounds.phase(1) is Phase.OPEN
    report(bounds, layout, 0, {IN: 10}, ended=True)
    assert bounds.phase(0) is Phase.DONE
    report(bounds, layout, 1, {VIA: 2})
    assert bounds.phase(1) is Phase.ENDING


def test_a_task_that_was_told_in_an_earlier_run_and_got_nothing_new_is_not_told_again() -> None:
    layout = chain()
    bounds = bounds_of(layout, Ends(), until_end=True)
    report(bounds, layout, 0, {IN: 10}, ended=True)
    assert bounds.phase(0) is Phase.DONE


def test_sub_topologies_that_feed_each_other_finish_together() -> None:
    layout, ends = chain(circle=True), Ends()
    bounds = bounds_of(layout, ends)
    ends.at = {VIA: 3, BACK: 0}
    report(bounds, layout, 0, {IN: 10, BACK: 0})
    report(bounds, layout, 1, {VIA: 2})
    assert bounds.phase(0) is bounds.phase(1) is Phase.OPEN
    ends.at[BACK] = 1  # the third record came back
    report(bounds, layout, 1, {VIA: 3})
    assert bounds.phase(0) is bounds.phase(1) is Phase.OPEN
    report(bounds, layout, 0, {IN: 10, BACK: 1})
    assert bounds.phase(0) is bounds.phase(1) is Phase.DONE


def test_input_that_comes_after_the_start_is_left_for_the_next_run() -> None:
    layout = chain()
    assert bounds_of(layout, Ends()).end_of(IN, 0) == 10


def test_a_stage_waits_for_all_its_tasks() -> None:
    topology = Topology().add_source("a", "in", key=str, value=str).add_sink("b", "out", "a", key=str, value=str)
    layout = lay_out(topology, "app", {"in": 2})
    other = TopicPartition("in", 1)
    bounds = BoundedRun(layout, False, {IN: 1, other: 0}, Ends())
    bounds.report(layout.tasks[0].id, {IN: 1}, False)
    bounds.advance()
    assert bounds.phase(0) is Phase.OPEN
    bounds.report(layout.tasks[1].id, {other: 0}, False)
    bounds.advance()
    assert bounds.phase(0) is Phase.DONE
