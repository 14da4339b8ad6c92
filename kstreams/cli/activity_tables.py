"""The activity of an application's instances as rows, from responses of `/v1/activity` and their differences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Rows = list[dict[str, Any]]
Instance = Mapping[str, Any]


class Rates:
    """Records per second, by kind (`read`, `written`, `dropped`) and by source, topic or operator.

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
        self._before: dict[tuple[object, ...], tuple[int, float]] = {}

    def of(self, instances: Iterable[Instance]) -> dict[tuple[str, str], float]:
        """Return the rates since the previous call. A new counter has the rate 0."""
        now: dict[tuple[object, ...], tuple[int, float]] = {}
        totals: defaultdict[tuple[str, str], float] = defaultdict(float)
        for instance in instances:
            for counter in instance["counts"]:
                key = (
                    instance["instance"],
                    instance["pid"],
                    *(counter[part] for part in ("kind", "of", "by", "reason")),
                )
                count = counter["count"]
                seconds = instance["seconds"]
                now[key] = (count, seconds)
                before, since = self._before.get(key, (count, seconds))
                rate = max(0, count - before) / (seconds - since) if seconds > since else 0.0
                totals[counter["kind"], counter["of"]] += rate
        self._before = now
        return dict(totals)


class Totals:
    """Counters that never fall: a task that moves begins at 0, and its earlier counts are retained.

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
        self._restarted: Counter[tuple[str, str, str]] = Counter()

    def of(self, instances: Sequence[Instance]) -> list[Instance]:
        """Return the instances. The first one also has the counts of tasks that have moved or ended."""
        former_counts = [
            {"kind": kind, "of": of, "by": "", "count": count, "reason": reason}
            for (kind, of, reason), count in self._former_counts(instances).items()
            if count
        ]
        first = [{**instance, "counts": [*instance["counts"], *former_counts]} for instance in instances[:1]]
        return [*first, *instances[1:]]

    def _former_counts(self, instances: Iterable[Instance]) -> Counter[tuple[str, str, str]]:
        """Return the counts of tasks that are not among the instances, or that have begun again."""
        now = set[tuple[object, ...]]()
        for instance in instances:
            for count in instance["counts"]:
                counter = (count["kind"], count["of"], count["reason"])
                key = (instance["instance"], instance["pid"], count["by"], *counter)
                if count["count"] < self._last.get(key, 0):  # the task has come back
                    self._restarted[counter] += self._last[key]
                self._last[key] = count["count"]
                now.add(key)
        counts = self._restarted.copy()
        for key in self._last.keys() - now:
            counts[key[3:]] += self._last[key]
        return counts


def tables(instances: Sequence[Instance], rates: Mapping[tuple[str, str], float]) -> dict[str, Rows]:
    """Return the tables of the activity: instances, sources, topics, dropped records, delays by quotas and so on."""
    return {
        "instances": [_instance(instance) for instance in instances],
        "sources": _counted(instances, rates, "read", "source"),
        "topics": _topics(instances, rates),
        "dropped": _dropped(instances, rates),
        "throttled": _throttled(instances, rates),
        "tasks": sorted((row for instance in instances for row in _tasks(instance)), key=lambda row: str(row["task"])),
        "stores": _stores(instances),
        "restoring": [
            {"instance": instance["instance"], **restore} for instance in instances for restore in instance["restores"]
        ],
    }


def _instance(instance: Instance) -> dict[str, object]:
    tasks = sum(len(thread["tasks"]) for thread in instance["threads"])
    identity = {name: instance[name] for name in ("instance", "pid", "state")}
    return {
        **identity,
        "threads": len(instance["threads"]),
        "tasks": tasks,
        "failed_threads": instance["failed_threads"],
    }


def _sums(instances: Iterable[Instance], kind: str) -> Counter[str]:
    totals: Counter[str] = Counter()
    for instance in instances:
        for counted in instance["counts"]:
            if counted["kind"] == kind:
                totals[counted["of"]] += counted["count"]
    return totals


def _counted(instances: Sequence[Instance], rates: Mapping[tuple[str, str], float], kind: str, name: str) -> Rows:
    sums = sorted(_sums(instances, kind).items())
    return [{name: of, "per_second": round(rates.get((kind, of), 0.0), 1), "records": count} for of, count in sums]


def _topics(instances: Sequence[Instance], rates: Mapping[tuple[str, str], float]) -> Rows:
    lags: Counter[str] = Counter()
    for instance in instances:
        for lag in instance["lags"]:
            lags[lag["topic"]] += lag["lag"]
    written = {row["topic"]: row for row in _counted(instances, rates, "written", "topic")}
    for row in _counted(instances, rates, "repartitioned", "topic"):
        name = next((topic for topic in lags if topic.endswith(f"-{row['topic']}")), row["topic"])
        written[name] = row
    unknown = {"per_second": None, "records": None}
    return [
        {"topic": topic, "lag": lags.get(topic), **{**unknown, **written.get(topic, {}), "topic": topic}}
        for topic in sorted({*lags, *written})
    ]


def _dropped(instances: Sequence[Instance], rates: Mapping[tuple[str, str], float]) -> Rows:
    sums: Counter[tuple[str, str]] = Counter()
    for instance in instances:
        for counted in instance["counts"]:
            if counted["kind"] == "dropped":
                sums[counted["of"], counted["reason"]] += counted["count"]
    return [
        {"operator": of, "reason": reason, "per_second": round(rates.get(("dropped", of), 0.0), 1), "records": count}
        for (of, reason), count in sorted(sums.items())
    ]


def _throttled(instances: Sequence[Instance], rates: Mapping[tuple[str, str], float]) -> Rows:
    """Return the delays by quotas: the share of the time since the last snapshot, and the sum in milliseconds."""
    threads = sum(len(instance["threads"]) for instance in instances) or 1
    return [
        {
            "client": client,
            "share": min(1.0, round(rates.get(("throttled", client), 0.0) / 1000 / threads, 3)),
            "ms": ms,
        }
        for client, ms in sorted(_sums(instances, "throttled").items())
    ]


def _tasks(instance: Instance) -> Rows:
    figures = {figure["task"]: figure for figure in instance["tasks"]}
    return [
        {
            "task": task,
            "instance": instance["instance"],
            "thread": thread["name"],
            "state": thread["state"],
            "stream_time": figures.get(task, {}).get("stream_time"),
            "bytes": figures.get(task, {}).get("bytes"),
        }
        for thread in instance["threads"]
        for task in thread["tasks"]
    ]


def _stores(instances: Iterable[Instance]) -> Rows:
    rows = Counter[str]()
    sizes = Counter[str]()
    for instance in instances:
        for figures in instance["stores"]:
            rows[figures["store"]] += figures["rows"]
            sizes[figures["store"]] += figures["bytes"]
    return [{"store": store, "rows": rows[store], "bytes": sizes[store]} for store in sorted(rows)]
