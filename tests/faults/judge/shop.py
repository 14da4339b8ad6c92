"""Visits, orders and customers: the input, and what the tables of the application must hold in the end.

The application counts visits by page and minute (each update once), writes the final count of each minute, joins
orders with the names of their customers, and counts the orders of each customer.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tests.faults.judge.records import Record, Row

MINUTE_MS = 60_000
CLOSE_MS = 4 * 86_400_000
CLOSING_PAGES = 64
OUTPUTS = ("counts", "finals", "named", "loads", "dead")
POISON = b"\xff\xfe poison"


class Input(NamedTuple):
    """The input of a run.

    Parameters
    ----------
    seed, records : int
    poison_every : int
        Every n-th visit cannot be decoded; 0 for none.
    padding : int
        Every hundredth order is as large as this.
    """

    seed: int
    records: int
    poison_every: int = 0
    padding: int = 0

    def rows(self) -> list[Row]:
        """Return all rows; rows of a partition are at most five seconds out of order."""
        chance = random.Random(self.seed)
        rows = []
        for i in range(self.records):
            time, kind = 1 + i * 20 + chance.randrange(5_000), chance.randrange(10)
            if kind < 6:
                page = b"page%d" % (int(chance.paretovariate(0.8)) % 200)
                is_poison = self.poison_every and i % self.poison_every == 0
                rows.append(Row("visits", b"v%d" % chance.randrange(5_000), POISON if is_poison else page, time))
            elif kind < 9:
                order = b"c%d %d" % (chance.randrange(100), i)
                padding = b" " + b"x" * self.padding if self.padding and i % 100 == 0 else b""
                rows.append(Row("orders", b"o%d" % chance.randrange(2_000), order + padding, time))
            else:
                rows.append(Row("customers", b"c%d" % chance.randrange(100), b"name%d" % i, time))
        return rows

    def closing_rows(self) -> list[Row]:
        """Return visits that move the time of every partition behind all windows."""
        time = 1 + self.records * 20 + CLOSE_MS
        return [Row("visits", b"closing%d" % n, b"close%d" % n, time) for n in range(CLOSING_PAGES)]


class Verdict(NamedTuple):
    """What the judge says of a run.

    Parameters
    ----------
    records, duplicates, losses, order_violations : int
    wrong : list of str
        Examples of what is wrong.
    """

    records: int
    duplicates: int
    losses: int
    order_violations: int
    wrong: list[str]


class Shop:
    """The books of a run: what was written, and what was read.

    Parameters
    ----------
    data : Input
    is_once : bool
        Whether each result must be there once; otherwise at least once.
    """

    outputs = OUTPUTS

    def __init__(self, data: Input, *, is_once: bool) -> None:
        self._data = data
        self._is_once = is_once
        self._written: list[Row] = []
        self._windows: Counter[str] = Counter()
        self._counts: Counter[tuple[str, int]] = Counter()
        self._last_counts: dict[str, int] = {}
        self._finals: Counter[tuple[str, int]] = Counter()
        self._named: dict[str, str] = {}
        self._last_orders: dict[str, int] = {}
        self._loads: dict[str, int] = {}
        self._dead = 0
        self._poison = 0
        self._visits = 0
        self._is_closed = False
        self.order_violations = 0

    def rows(self) -> list[Row]:
        return self._data.rows()

    def closing_rows(self) -> list[Row]:
        self._is_closed = True
        return self._data.closing_rows()

    def wrote(self, rows: Iterable[Row]) -> None:
        """Take note of rows that are in the topics."""
        for row in rows:
            self._written.append(row)
            if row.topic == "visits" and row.value == POISON:
                self._poison += 1
            elif row.topic == "visits":
                self._visits += 1
                page = (row.value or b"").decode()
                self._windows[f"{page}@{row.timestamp // MINUTE_MS * MINUTE_MS}"] += 1

    def read(self, topic: str, records: Iterable[Record]) -> None:
        """Take note of committed records."""
        for record in records:
            getattr(self, f"_read_{topic}")(record)

    def is_behind(self) -> bool:
        """Whether updates of written visits are not there yet."""
        return len(self._counts) < self._visits

    def is_complete(self) -> bool:
        """Whether every result is there."""
        return not self.is_behind() and not self.verdict().losses

    def verdict(self) -> Verdict:
        """Compare what was read with what must be there."""
        wrong: list[str] = []
        losses = duplicates = 0
        updates = {(window, n) for window, last in self._windows.items() for n in range(1, last + 1)}
        finals = {each for each in self._windows.items() if not each[0].startswith("close")} if self._is_closed else ()
        if self._is_once:
            for name, expected, seen in (("counts", updates, self._counts), ("finals", set(finals), self._finals)):
                losses += _note(wrong, f"{name} lost", expected - seen.keys())
                doubled = [each for each, times in seen.items() if times > 1 or each not in expected]
                duplicates += _note(wrong, f"{name} doubled", doubled)
        else:
            lower = [each for each, last in self._windows.items() if self._last_counts.get(each, 0) < last]
            losses += _note(wrong, "counts too low", lower)
            duplicates += sum(self._last_counts.get(each, 0) > last for each, last in self._windows.items())
            duplicates += sum(times - 1 for times in self._counts.values())
            losses += _note(wrong, "finals lost", {each for each, _ in finals} - {each for each, _ in self._finals})
        losses += _note(wrong, "named other", self._expected_named().items() ^ self._named.items())
        if self._is_once:
            losses += _note(wrong, "loads other", self._expected_loads().items() ^ self._loads.items())
        losses += max(0, self._poison - self._dead)
        duplicates += max(0, self._dead - self._poison)
        return Verdict(len(self._written), duplicates, losses, self.order_violations, wrong)

    def _read_counts(self, record: Record) -> None:
        window, count = _text(record.key), _number(record.value)
        last = self._last_counts.get(window, 0)
        self.order_violations += count != last + 1 if self._is_once else count < last
        self._counts[window, count] += 1
        self._last_counts[window] = max(count, last) if not self._is_once else count

    def _read_finals(self, record: Record) -> None:
        self._finals[_text(record.key), _number(record.value)] += 1

    def _read_named(self, record: Record) -> None:
        key = _text(record.key)
        if record.value is None:  # the order went to a customer without a name
            self._named.pop(key, None)
            return
        order = int(record.value.split()[1])
        self.order_violations += self._is_once and order < self._last_orders.get(key, 0)
        self._last_orders[key] = max(order, self._last_orders.get(key, 0))
        self._named[key] = _text(record.value)

    def _read_loads(self, record: Record) -> None:
        self._loads[_text(record.key)] = _number(record.value)

    def _read_dead(self, record: Record) -> None:
        self._dead += record.value == POISON

    def _expected_named(self) -> dict[str, str]:
        orders, customers = self._tables()
        return {
            key: f"{order} of {customers[customer]}"
            for key, order in orders.items()
            if (customer := order.split()[0]) in customers
        }

    def _expected_loads(self) -> dict[str, int]:
        orders, _ = self._tables()
        ever = {_text(row.value).split()[0] for row in self._written if row.topic == "orders"}
        loads = Counter(order.split()[0] for order in orders.values())
        return {customer: loads[customer] for customer in ever}

    def _tables(self) -> tuple[dict[str, str], dict[str, str]]:
        orders = {_text(row.key): _text(row.value) for row in self._written if row.topic == "orders"}
        customers = {_text(row.key): _text(row.value) for row in self._written if row.topic == "customers"}
        return orders, customers


class Numbers:
    """Numbers from 0 on in a topic, each once and in the order of its key.

    Parameters
    ----------
    records : int
    """

    outputs = ("sent",)

    def __init__(self, records: int) -> None:
        self._records = records
        self._seen: Counter[int] = Counter()
        self._last: dict[bytes, int] = {}
        self.order_violations = 0

    def rows(self) -> list[Row]:
        return []

    def closing_rows(self) -> list[Row]:
        return []

    def wrote(self, rows: Iterable[Row]) -> None:
        """Nothing: the producer writes the numbers."""

    def read(self, topic: str, records: Iterable[Record]) -> None:
        for record in records:
            number = _number(record.value)
            self._seen[number] += 1
            self.order_violations += number <= self._last.get(record.key or b"", -1)
            self._last[record.key or b""] = number

    def is_behind(self) -> bool:
        return len(self._seen) < self._records

    def is_complete(self) -> bool:
        return not self.is_behind()

    def verdict(self) -> Verdict:
        wrong: list[str] = []
        losses = _note(wrong, "lost", set(range(self._records)) - self._seen.keys())
        doubled = _note(wrong, "doubled", [number for number, times in self._seen.items() if times > 1])
        return Verdict(self._records, doubled, losses, self.order_violations, wrong)


def _note(wrong: list[str], what: str, cases: Iterable[object]) -> int:
    """Count cases, and note some of them."""
    some = sorted(map(str, cases))
    if some:
        wrong.append(f"{what}: {len(some)}, such as {', '.join(each[:60] for each in some[:3])}")
    return len(some)


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode()


def _number(raw: bytes | None) -> int:
    return int.from_bytes(raw or b"", "big", signed=True)
