"""What the instances of an application do, as rows: from answers of `/v1/activity` and their differences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Rows = list[dict[str, Any]]
Instance = Mapping[str, Any]


class Rates:
    """Records per second, by kind (`read`, `written`, `dropped`) and by what counts them.

    Examples
    --------
    >>> def at(seconds, count):
    ...     counted = {"kind": "read", "of": "in", "by": "0_0", "count": count, "reason": ""}
    ...     return [{"instance": "a", "pid": 1, "seconds": seconds, "counts": [counted]}]
    >>> rates = Rates()
    >>> rates.of(at(10.0, 100)), rates.of(at(12.0, 300))
    ({('read', 'in'): 0.0}, {('read', 'in'): 100.0})
    """

    def __init__(self) -> None:
        self._before: dict[tuple[Any, ...], tuple[int, float]] = {}

    def of(self, instances: Iterable[Instance]) -> dict[tuple[str, str], float]:
        """Since the call before; what is counted for the first time has no rate yet."""
        now: dict[tuple[Any, ...], tuple[int, float]] = {}
        found: defaultdict[tuple[str, str], float] = defaultdict(float)
        for instance in instances:
            for each in instance["counts"]:
                key = (instance["instance"], instance["pid"], *(each[part] for part in ("kind", "of", "by", "reason")))
                count = each["count"]
                seconds = instance["seconds"]
                now[key] = (count, seconds)
                before, since = self._before.get(key, (count, seconds))
                passed = max(0, count - before) / (seconds - since) if seconds > since else 0.0
                found[each["kind"], each["of"]] += passed
        self._before = now
        return dict(found)


class Totals:
    """Counters that do not fall: what a task has counted stays counted when it goes elsewhere and begins at 0 there.

    Examples
    --------
    >>> def at(address, count):
    ...     counted = {"kind": "read", "of": "in", "by": "0_0", "count": count, "reason": ""}
    ...     return [{"instance": address, "pid": 1, "counts": [counted]}]
    >>> totals = Totals()
    >>> for instances in (at("a", 100), at("b", 7), at("a", 20)):
    ...     print(sum(each["count"] for each in totals.of(instances)[0]["counts"]))
    100
    107
    127
    """

    def __init__(self) -> None:
        self._last: dict[tuple[Any, ...], int] = {}
        self._left: Counter[tuple[str, str, str]] = Counter()

    def of(self, instances: Sequence[Instance]) -> list[Instance]:
        """The same instances; the first one also tells what was counted by tasks that count it no longer."""
        left = self._left_after(instances)
        gone = [
            {"kind": kind, "of": of, "by": "", "count": count, "reason": reason}
            for (kind, of, reason), count in left.items()
            if count
        ]
        first = [{**each, "counts": [*each["counts"], *gone]} for each in instances[:1]]
        return [*first, *instances[1:]]

    def _left_after(self, instances: Iterable[Instance]) -> Counter[tuple[str, str, str]]:
        now = set[tuple[Any, ...]]()
        for instance in instances:
            for each in instance["counts"]:
                what = (each["kind"], each["of"], each["reason"])
                key = (instance["instance"], instance["pid"], each["by"], *what)
                if each["count"] < self._last.get(key, 0):  # the task has come back
                    self._left[what] += self._last[key]
                self._last[key] = each["count"]
                now.add(key)
        left = self._left.copy()
        for key in self._last.keys() - now:
            left[key[3:]] += self._last[key]
        return left


def tables(instances: Sequence[Instance], rates: Mapping[tuple[str, str], float]) -> dict[str, Rows]:
    """Instances, sources, topics, drops, tasks, stores and restores."""
    return {
        "instances": [_instance(each) for each in instances],
        "sources": _counted(instances, rates, "read", "source"),
        "topics": _topics(instances, rates),
        "dropped": _dropped(instances, rates),
        "tasks": sorted((row for each in instances for row in _tasks(each)), key=lambda row: str(row["task"])),
        "stores": _stores(instances),
        "restoring": [{"instance": each["instance"], **left} for each in instances for left in each["restores"]],
    }


def _instance(each: Instance) -> dict[str, Any]:
    tasks = sum(len(thread["tasks"]) for thread in each["threads"])
    who = {name: each[name] for name in ("instance", "pid", "state")}
    return {**who, "threads": len(each["threads"]), "tasks": tasks, "failed_threads": each["failed_threads"]}


def _sums(instances: Iterable[Instance], kind: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for each in instances:
        for counted in each["counts"]:
            if counted["kind"] == kind:
                found[counted["of"]] += counted["count"]
    return found


def _counted(instances: Sequence[Instance], rates: Mapping[tuple[str, str], float], kind: str, name: str) -> Rows:
    sums = sorted(_sums(instances, kind).items())
    return [{name: of, "per_second": round(rates.get((kind, of), 0.0), 1), "records": count} for of, count in sums]


def _topics(instances: Sequence[Instance], rates: Mapping[tuple[str, str], float]) -> Rows:
    lags: Counter[str] = Counter()
    for each in instances:
        for lag in each["lags"]:
            lags[lag["topic"]] += lag["lag"]
    written = {row["topic"]: row for row in _counted(instances, rates, "written", "topic")}
    for row in _counted(instances, rates, "repartitioned", "topic"):
        name = next((topic for topic in lags if topic.endswith(f"-{row['topic']}")), row["topic"])
        written[name] = row
    none = {"per_second": None, "records": None}
    return [
        {"topic": topic, "lag": lags.get(topic), **{**none, **written.get(topic, {}), "topic": topic}}
        for topic in sorted({*lags, *written})
    ]


def _dropped(instances: Sequence[Instance], rates: Mapping[tuple[str, str], float]) -> Rows:
    sums: Counter[tuple[str, str]] = Counter()
    for each in instances:
        for counted in each["counts"]:
            if counted["kind"] == "dropped":
                sums[counted["of"], counted["reason"]] += counted["count"]
    return [
        {"operator": of, "reason": reason, "per_second": round(rates.get(("dropped", of), 0.0), 1), "records": count}
        for (of, reason), count in sorted(sums.items())
    ]


def _tasks(each: Instance) -> Rows:
    figures = {figure["task"]: figure for figure in each["tasks"]}
    return [
        {
            "task": task,
            "instance": each["instance"],
            "thread": thread["name"],
            "state": thread["state"],
            "stream_time": figures.get(task, {}).get("stream_time"),
            "bytes": figures.get(task, {}).get("bytes"),
        }
        for thread in each["threads"]
        for task in thread["tasks"]
    ]


def _stores(instances: Iterable[Instance]) -> Rows:
    rows = Counter[str]()
    used = Counter[str]()
    for each in instances:
        for figures in each["stores"]:
            rows[figures["store"]] += figures["rows"]
            used[figures["store"]] += figures["bytes"]
    return [{"store": store, "rows": rows[store], "bytes": used[store]} for store in sorted(rows)]
