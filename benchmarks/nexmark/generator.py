"""The events of Nexmark: persons, auctions and bids by the rules of its generator, as columns.

The rules are those of https://github.com/nexmark/nexmark (`generator/model`), with one difference: that adds 1,000 to
the bidder of a bid twice, so that `bidder` names persons who register much later, or never. Here it is added once.
Times are milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kstreams.log import Log
from kstreams.log.partitioning import split_by_partition

TOPIC = "nexmark"
SIDE_INPUT = "nexmark-side-input"
SIDE_ROWS = 10_000

AUCTIONS_OF_EPOCH = 3
EPOCH = 50  # events: 1 person, 3 auctions, 46 bids
BLOCK = 1_000 * EPOCH
FIRST_ID = 1_000
FIRST_CATEGORY = 10
CATEGORIES = 5
ACTIVE_PEOPLE = 1_000
AUCTIONS_IN_FLIGHT = 100
LEAD = 10  # ids that are named before their person or auction exists
HOT = 100  # one of so many persons, and of so many auctions, is the hot one

HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000
STATES = pa.array(["AZ", "CA", "ID", "OR", "WA", "WY"])
CITIES = pa.array(
    ["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"]
)
FIRST_NAMES = pa.array(["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"])
LAST_NAMES = pa.array(["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"])

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Random = np.random.Generator


@dataclass(frozen=True)
class Settings:
    """The settings of a run, with the defaults of Nexmark except for the rate and the number of events.

    Parameters
    ----------
    events : int
    seed : int
    rate : int
        Events per second of event time.
    out_of_order : int
        The times of so many events in a row are exchanged; 1 leaves them in order.
    start_ms : int
        The time of the first event.
    """

    events: int
    seed: int = 1
    rate: int = 10_000
    out_of_order: int = 1
    start_ms: int = 1_767_225_600_000  # 2026-01-01


@dataclass(frozen=True)
class Events:
    """A block of events: the numbers of the persons, auctions and bids in the stream, and their fields as columns."""

    person_numbers: Numbers
    auction_numbers: Numbers
    bid_numbers: Numbers
    person: pa.Table
    auction: pa.Table
    bid: pa.Table

    def times(self) -> Numbers:
        """Return the time of each event, in the order of the stream."""
        return self._in_order([table["dateTime"].combine_chunks() for table in self._tables()]).to_numpy()

    def as_json(self) -> pa.Array:
        """Return each event as the bytes of a topic, in the order of the stream."""
        texts = [_event_json(kind, table) for kind, table in enumerate(self._tables())]
        return self._in_order(texts).cast(pa.binary())

    def _tables(self) -> Sequence[pa.Table]:
        return self.person, self.auction, self.bid

    def _in_order(self, columns: Sequence[pa.Array]) -> pa.Array:
        numbers = np.concatenate([self.person_numbers, self.auction_numbers, self.bid_numbers])
        return pa.concat_arrays(columns).take(pa.array(np.argsort(numbers)))


def blocks(settings: Settings) -> Iterator[Events]:
    """Generate the events in blocks. A block depends on the seed and its place alone."""
    texts = _Texts(np.random.default_rng(settings.seed))
    for first in range(0, settings.events, BLOCK):
        numbers = np.arange(first, min(first + BLOCK, settings.events))
        yield _block(settings, texts, np.random.default_rng([settings.seed, first]), numbers)


def all_events(settings: Settings) -> Events:
    """Return all events as one block."""
    parts = list(blocks(settings))
    return Events(
        *(
            np.concatenate([getattr(part, f"{kind}_numbers") for part in parts])
            for kind in ("person", "auction", "bid")
        ),
        *(pa.concat_tables([getattr(part, kind) for part in parts]) for kind in ("person", "auction", "bid")),
    )


def write_topic(log: Log, settings: Settings, partitions: int) -> None:
    """Write the events to the topic of a log, 50 in a row to each partition in turn, and the side input of query 13."""
    with log.admin() as admin, log.producer() as producer:
        admin.create_topic(TOPIC, partitions)
        admin.create_topic(SIDE_INPUT, 1)
        for name in range(SIDE_ROWS):
            producer.send(SIDE_INPUT, name.to_bytes(8, "big"), b"%d" % name, timestamp=settings.start_ms)
        written = 0
        for events in blocks(settings):
            values = events.as_json()
            chosen = (written + np.arange(len(values))) // EPOCH % partitions
            columns = pa.nulls(len(values), pa.binary()), values, pa.array(events.times())
            for batch, _ in split_by_partition(TOPIC, chosen, *columns, None):
                producer.send_batch(batch)
            written += len(values)
        producer.flush()


def write_parquet(settings: Settings, folder: Path) -> None:
    """Write `person.parquet`, `auction.parquet` and `bid.parquet`."""
    writers: dict[str, pq.ParquetWriter] = {}
    for events in blocks(settings):
        for kind in ("person", "auction", "bid"):
            table: pa.Table = getattr(events, kind)
            if kind not in writers:
                writers[kind] = pq.ParquetWriter(folder / f"{kind}.parquet", table.schema)
            writers[kind].write_table(table)
    for writer in writers.values():
        writer.close()


def _block(settings: Settings, texts: _Texts, random: Random, numbers: Numbers) -> Events:
    place = numbers % EPOCH
    person = numbers[place == 0]
    auction = numbers[(place > 0) & (place <= AUCTIONS_OF_EPOCH)]
    bid = numbers[place > AUCTIONS_OF_EPOCH]
    return Events(
        person_numbers=person,
        auction_numbers=auction,
        bid_numbers=bid,
        person=_persons(settings, texts, random, person),
        auction=_auctions(settings, texts, random, auction),
        bid=_bids(settings, texts, random, bid),
    )


def _persons(settings: Settings, texts: _Texts, random: Random, numbers: Numbers) -> pa.Table:
    count = len(numbers)
    name = pc.binary_join_element_wise(_one_of(FIRST_NAMES, random, count), _one_of(LAST_NAMES, random, count), " ")
    domain = pc.binary_join_element_wise(texts.words(random, count, 5), ".com", "")
    email = pc.binary_join_element_wise(texts.words(random, count, 7), domain, "@")
    digits = [texts.four_digits.take(pa.array(random.integers(0, 10_000, count))) for _ in range(4)]
    card = pc.binary_join_element_wise(*digits, " ")
    city = _one_of(CITIES, random, count)
    state = _one_of(STATES, random, count)
    size = 8 + sum(pc.utf8_length(column).to_numpy() for column in (name, email, card, city, state))
    return pa.table(
        {
            "id": _last_person(numbers) + FIRST_ID,
            "name": name,
            "emailAddress": email,
            "creditCard": card,
            "city": city,
            "state": state,
            "dateTime": _adjusted_times(settings, numbers),
            "extra": texts.extra(random, size, 200),
        }
    )


def _auctions(settings: Settings, texts: _Texts, random: Random, numbers: Numbers) -> pa.Table:
    count = len(numbers)
    hot_seller = _last_person(numbers) // HOT * HOT
    is_hot = random.integers(0, 4, count) > 0
    times = _adjusted_times(settings, numbers)
    horizon = _times(settings, _adjusted(settings, numbers) + AUCTIONS_IN_FLIGHT * EPOCH // AUCTIONS_OF_EPOCH) - times
    name = texts.words(random, count, 20)
    description = texts.words(random, count, 100)
    initial_bid = _prices(random, count)
    size = 48 + pc.utf8_length(name).to_numpy() + pc.utf8_length(description).to_numpy()
    return pa.table(
        {
            "id": _last_auction(numbers) + FIRST_ID,
            "itemName": name,
            "description": description,
            "initialBid": initial_bid,
            "reserve": initial_bid + _prices(random, count),
            "dateTime": times,
            "expires": times + 1 + _below(random, np.maximum(horizon * 2, 1)),
            "seller": np.where(is_hot, hot_seller, _some_person(random, numbers)) + FIRST_ID,
            "category": FIRST_CATEGORY + random.integers(0, CATEGORIES, count),
            "extra": texts.extra(random, size, 500),
        }
    )


def _bids(settings: Settings, texts: _Texts, random: Random, numbers: Numbers) -> pa.Table:
    count = len(numbers)
    last_auction = _last_auction(numbers)
    first_auction = np.maximum(last_auction - AUCTIONS_IN_FLIGHT, 0)
    some_auction = first_auction + _below(random, last_auction - first_auction + 1 + LEAD)
    on_hot_auction = random.integers(0, 2, count) > 0
    by_hot_bidder = random.integers(0, 4, count) > 0
    hot_bidder = _last_person(numbers) // HOT * HOT + 1
    in_hot_channel = random.integers(0, 2, count) > 0
    hot_channel = CHANNELS + random.integers(0, len(HOT_CHANNELS), count)
    channel = pa.array(np.where(in_hot_channel, hot_channel, random.integers(0, CHANNELS, count)))
    return pa.table(
        {
            "auction": np.where(on_hot_auction, last_auction // HOT * HOT, some_auction) + FIRST_ID,
            "bidder": np.where(by_hot_bidder, hot_bidder, _some_person(random, numbers)) + FIRST_ID,
            "price": _prices(random, count),
            "channel": texts.channels.take(channel),
            "url": texts.urls.take(channel),
            "dateTime": _adjusted_times(settings, numbers),
            "extra": texts.extra(random, np.full(count, 32), 100),
        }
    )


class _Texts:
    """The texts of all blocks: letters to cut from, and the channels with their addresses."""

    def __init__(self, random: Random) -> None:
        self._letters = random.integers(ord("a"), ord("z") + 1, 4 << 20).astype(np.uint8)
        self._with_spaces = np.where(random.integers(0, 13, 4 << 20) == 0, ord(" "), self._letters).astype(np.uint8)
        self.four_digits = pa.array([f"{number:04d}" for number in range(10_000)])
        self.channels = pa.array([*(f"channel-{number}" for number in range(CHANNELS)), *HOT_CHANNELS])
        addresses = self._addresses(random, CHANNELS + len(HOT_CHANNELS))
        has_id = random.integers(0, 10, CHANNELS) > 0
        self.urls = pa.array(
            [
                f"{address}&channel_id={_reversed_bits(number)}" if number < CHANNELS and has_id[number] else address
                for number, address in enumerate(addresses)
            ]
        )

    def words(self, random: Random, count: int, longest: int) -> pa.Array:
        """Return texts of 3 letters or more, less than `longest`, with some spaces."""
        lengths = random.integers(3, longest, count)
        return pc.utf8_trim_whitespace(self._cut(self._with_spaces, random, lengths))

    def extra(self, random: Random, size: Numbers, average: int) -> pa.Array:
        """Return texts that bring events of a size to the average size, give or take a fifth."""
        missing = np.maximum(average - size, 0)
        delta = np.rint(missing * 0.2).astype(np.int64)
        return self._cut(self._letters, random, missing - delta + _below(random, np.maximum(2 * delta, 1)))

    def _addresses(self, random: Random, count: int) -> Iterator[str]:
        folders = pc.replace_substring(self._cut(self._with_spaces, random, random.integers(3, 5, 3 * count)), " ", "_")
        names = folders.to_pylist()
        for number in range(count):
            path = "/".join(names[3 * number : 3 * number + 3])
            yield f"https://www.nexmark.com/{path}/item.htm?query=1"

    def _cut(self, letters: np.ndarray[Any, Any], random: Random, lengths: Numbers) -> pa.Array:
        """Return texts of some lengths that follow each other in the letters, from a random place on."""
        ends = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=ends[1:])
        rotated = np.roll(letters, random.integers(0, len(letters)))
        data = np.resize(rotated, ends[-1])
        return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(ends), pa.py_buffer(data))


def _reversed_bits(number: int) -> int:
    """Return what Java's `Math.abs(Integer.reverse(number))` returns."""
    reverse = int(f"{number:032b}"[::-1], 2)
    return abs(reverse - (1 << 32) if reverse >> 31 else reverse)


def _last_person(numbers: Numbers) -> Numbers:
    return numbers // EPOCH


def _last_auction(numbers: Numbers) -> Numbers:
    place = numbers % EPOCH
    return numbers // EPOCH * AUCTIONS_OF_EPOCH + np.minimum(place, AUCTIONS_OF_EPOCH) - 1


def _some_person(random: Random, numbers: Numbers) -> Numbers:
    people = _last_person(numbers) + 1
    active = np.minimum(people, ACTIVE_PEOPLE)
    return people - active + _below(random, active + LEAD)


def _below(random: Random, limits: Numbers) -> Numbers:
    return (random.random(len(limits)) * limits).astype(np.int64)


def _prices(random: Random, count: int) -> Numbers:
    return np.rint(10.0 ** (random.random(count) * 6) * 100).astype(np.int64)


def _one_of(names: pa.Array, random: Random, count: int) -> pa.Array:
    return names.take(pa.array(random.integers(0, len(names), count)))


def _adjusted(settings: Settings, numbers: Numbers) -> Numbers:
    group = settings.out_of_order
    return numbers // group * group + numbers * 953 % group


def _adjusted_times(settings: Settings, numbers: Numbers) -> Numbers:
    return _times(settings, _adjusted(settings, numbers))


def _times(settings: Settings, numbers: Numbers) -> Numbers:
    return settings.start_ms + (numbers * (1e6 / settings.rate)).astype(np.int64) // 1_000


_KINDS = ("person", "auction", "bid")


def _event_json(kind: int, table: pa.Table) -> pa.Array:
    """Return events of one kind as JSON objects. No text has a character that JSON escapes."""
    pieces: list[object] = [f'{{"event_type":{kind},' + "".join(f'"{name}":null,' for name in _KINDS[:kind])]
    separator = f'"{_KINDS[kind]}":{{'
    for name in table.column_names:
        column = table[name].combine_chunks()
        quote = '"' if pa.types.is_string(column.type) else ""
        pieces += [f'{separator}"{name}":{quote}', column.cast(pa.string())]
        separator = f"{quote},"
    end = '"}' + "".join(f',"{name}":null' for name in _KINDS[kind + 1 :]) + "}"
    return pc.binary_join_element_wise(*pieces, end, "")
