"""However processes come, go and lag behind each other, no task is run by two, and in the end each is run by one."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.assignment.clients import AssignmentRules
from kstreams.runtime.native.group.messages import Assignment, ProcessShare, ProcessState
from kstreams.runtime.native.group.next_assignment import next_assignment

TASKS = {TaskId(sub, partition): sub == 0 for sub in (0, 1) for partition in range(3)}


@dataclass
class Process:
    """A process that does what assignments say, when it comes to it."""

    name: str
    version: int = 0
    active: set[str] = field(default_factory=set)
    share: ProcessShare = field(default_factory=ProcessShare)

    def follow(self, latest: Assignment) -> None:
        self.version, self.share = latest.version, latest.shares.get(self.name, ProcessShare())
        self.active |= set(self.share.active)

    def release(self) -> None:
        self.active &= set(self.share.active)

    def state(self) -> ProcessState:
        lags = dict.fromkeys(self.share.standby, 0)
        told = tuple(sorted(self.active)), self.share.standby, lags
        return ProcessState(self.name, self.name, self.version, 1, *told)


@dataclass
class Application:
    """Its processes, what each has told the others, and the latest assignment."""

    rules: AssignmentRules
    processes: dict[str, Process] = field(default_factory=dict)
    told: dict[str, ProcessState] = field(default_factory=dict)
    latest: Assignment = field(default_factory=Assignment)

    def take(self, action: str, name: str) -> None:
        process = self.processes.get(name)
        if action == "starts" and process is None:
            self.processes[name] = Process(name)
        elif action == "ends":
            self.processes.pop(name, None)
            self.told.pop(name, None)
        elif action == "leads":
            self.latest = next_assignment(self.latest, self.told, TASKS, self.rules) or self.latest
        elif process is not None and action == "follows":
            process.follow(self.latest)
        elif process is not None and action == "releases":
            process.release()
        elif process is not None:
            self.told[name] = process.state()

    def run_twice(self) -> set[str]:
        seen: set[str] = set()
        twice: set[str] = set()
        for process in self.processes.values():
            twice |= seen & process.active
            seen |= process.active
        return twice


names = st.sampled_from("abc")
actions = st.sampled_from(["starts", "ends", "leads", "follows", "releases", "tells"])
steps = st.lists(st.tuples(actions, names), max_size=60)
rules = st.builds(AssignmentRules, st.integers(0, 1), st.integers(1, 2))


@given(rules, steps)
def test_no_task_is_run_by_two_processes(rules: AssignmentRules, steps: list[tuple[str, str]]) -> None:
    application = Application(rules)
    for action, name in steps:
        application.take(action, name)
        assert not application.run_twice()


@given(rules, steps)
def test_in_the_end_every_task_is_run(rules: AssignmentRules, steps: list[tuple[str, str]]) -> None:
    application = Application(rules)
    for step in [*steps, ("starts", "a")]:
        application.take(*step)
    for _ in range(40):
        for action in ("tells", "leads", "follows", "releases"):
            for name in application.processes:
                application.take(action, name)
    assert {task for process in application.processes.values() for task in process.active} == set(map(str, TASKS))
    counts = [len(process.active) for process in application.processes.values()]
    assert max(counts) - min(counts) <= 2  # of tasks with state and of others each one at most
