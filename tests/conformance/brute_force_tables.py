"""What a stream's aggregate seen through a filter puts out, record by record: a few loops, without kstreams.

Kafka Streams without the record cache tells that the first update of a key replaces the aggregate's initial value. A
filter behind it that lets this value pass then deletes a row that never was. The full answer has no such tombstone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.conformance.recorded import Case, Rows, replay

Pair = tuple[Any, Any]
Emit = Callable[[Any, Any], None]
Step = Callable[[Any, Any], Iterator[Pair]]
"""The records that an operator makes of one: key and value in, keys and values out."""


def concerns(case: Case) -> bool:
    """Whether a filter sees the changes of an aggregate that begins with a value."""
    nodes = {node["id"]: node for node in case["topology"] if "id" in node}
    return any(
        node["op"] in ("filter", "filter_not")
        and nodes[node["in"]]["op"] in ("count", "aggregate")
        and nodes[nodes[node["in"]]["in"]]["op"] in ("group_by", "group_by_key")
        and _reads_a_stream(nodes, nodes[node["in"]])
        for node in nodes.values()
    )


def full_answer(case: Case) -> Case:
    """The case with the output that has no tombstones of rows that never were."""
    rows = output(case)
    expected = dict(case["expected"]) | {"output_uncached": rows}
    if any(node.get("caching") is False for node in case["topology"]):
        expected["output"] = rows
    return case | {"expected": expected}


def is_within_reach(case: Case) -> bool:
    """Whether these loops know all operators of a case."""
    return all(
        node["op"] in {*_STEPS, "stream", "to", "split", "count", "reduce", "aggregate"} for node in case["topology"]
    )


def output(case: Case) -> Rows:
    """The output, with one row for each update."""
    return _Run(case).output()


def _reads_a_stream(nodes: dict[str, Any], node: Any) -> bool:
    while "in" in node:
        node = nodes[node["in"]] if node["in"] in nodes else _split_of(nodes, node["in"])
    return bool(node["op"] == "stream")


def _split_of(nodes: dict[str, Any], branch: str) -> Any:
    """Branches are made of streams alone."""
    return {"op": "stream"}


class _Run:
    """Pushes the records of a case through its operators, one after the other, each to its end."""

    def __init__(self, case: Case) -> None:
        self._case, self._rows = case, Rows()
        self._totals: dict[str, dict[Any, tuple[Any, int]]] = {}
        self._item: Case = {}
        self._number = 0

    def output(self) -> Rows:
        for number, item in enumerate(self._case["input"]):
            self._number, self._item = number, item
            for node in self._case["topology"]:
                if item.get("topic") in node.get("topics", ()):
                    self._emit(node["id"], item["key"], item["value"], item["ts"])
        return self._rows

    def _emit(self, name: str, key: Any, value: Any, time: int) -> None:
        """Hand a record to all operators that read this one."""
        for node in self._case["topology"]:
            if node.get("in") == name or node.get("right") == name:
                self._process(node, key, value, time)

    def _process(self, node: Case, key: Any, value: Any, time: int) -> None:
        op = node["op"]
        if op == "to":
            self._rows.append([self._number, node["topic"], key, value, time, self._item.get("headers", [])])
        elif op in ("count", "reduce", "aggregate"):
            self._aggregate(node, key, value, time)
        elif op == "split":
            self._emit(_branch(node, key, value), key, value, time)
        else:
            for new_key, new_value in _step(node)(key, value):
                self._emit(node["id"], new_key, new_value, time)

    def _aggregate(self, node: Case, key: Any, value: Any, time: int) -> None:
        if key is None or value is None:
            return
        totals = self._totals.setdefault(node["id"], {})
        old, before = totals.get(key, (None, time))
        new = _added(node, key, value, old)
        time = max(time, before)
        if new is None:
            totals.pop(key, None)
        else:
            totals[key] = new, time
        self._change(node["id"], key, new, old, time)

    def _change(self, name: str, key: Any, new: Any, old: Any, time: int) -> None:
        """Hand the change of a table's row to what reads the table."""
        for node in self._case["topology"]:
            if node.get("in") == name and node["op"] in ("filter", "filter_not"):
                rows = [None if row is None or not list(_step(node)(key, row)) else row for row in (new, old)]
                if rows != [None, None]:
                    self._change(node["id"], key, rows[0], rows[1], time)
            elif node.get("in") == name:
                self._process(node, key, new, time)


def _branch(node: Case, key: Any, value: Any) -> str:
    passing = (branch["id"] for branch in node["branches"] if _predicate(branch)(key, value))
    return str(next(passing, node.get("default", "")))


def _predicate(node: Case) -> Callable[[Any, Any], bool]:
    named: Callable[[Any, Any], bool] = replay().named(replay().PREDICATES, node["fn"])
    return named


def _added(node: Case, key: Any, value: Any, old: Any) -> Any:
    if node["op"] == "count":
        return (old or 0) + 1
    if node["op"] == "reduce":
        return value if old is None else replay().named(replay().REDUCERS, node["fn"])(old, value)
    initial = replay().named(replay().INITIALIZERS, node["initializer"])
    return replay().named(replay().AGGREGATORS, node["fn"])(key, value, initial() if old is None else old)


def _step(node: Case) -> Step:
    return _STEPS[node["op"]](node)


def _keeps(node: Case, *, passing: bool) -> Step:
    predicate = _predicate(node)
    return lambda key, value: iter([(key, value)] if predicate(key, value) is passing else [])


def _one(catalogue: str, make: Callable[[Any, Any, Any], Pair]) -> Callable[[Case], Step]:
    """An operator that makes one record, from what its function gives."""

    def step(node: Case) -> Step:
        function = replay().named(getattr(replay(), catalogue), node["fn"])
        return lambda key, value: iter([make(key, value, function(key, value))])

    return step


def _many(catalogue: str, make: Callable[[Any, Any], Pair]) -> Callable[[Case], Step]:
    """An operator that makes a record of each thing that its function gives."""

    def step(node: Case) -> Step:
        function = replay().named(getattr(replay(), catalogue), node["fn"])
        return lambda key, value: iter([make(key, each) for each in function(key, value)])

    return step


def _as_it_is(node: Case) -> Step:
    return lambda key, value: iter([(key, value)])


_STEPS: dict[str, Callable[[Case], Step]] = {
    "filter": lambda node: _keeps(node, passing=True),
    "filter_not": lambda node: _keeps(node, passing=False),
    "map": _one("MAPPERS", lambda key, value, pair: tuple(pair)),
    "map_values": _one("VALUE_MAPPERS", lambda key, value, new: (key, new)),
    "select_key": _one("KEY_MAPPERS", lambda key, value, new: (new, value)),
    "group_by": _one("KEY_MAPPERS", lambda key, value, new: (new, value)),
    "flat_map": _many("FLAT_MAPPERS", lambda key, pair: tuple(pair)),
    "flat_map_values": _many("FLAT_VALUE_MAPPERS", lambda key, new: (key, new)),
    "group_by_key": _as_it_is,
    "merge": _as_it_is,
    "peek": _as_it_is,
    "to_stream": _as_it_is,
}
