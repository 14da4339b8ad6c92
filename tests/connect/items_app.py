"""The application of `test_with_debezium.py`: the rows of a database table, from Debezium's events to a topic."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

import msgspec

import kstreams as ks

KEY = ks.ConnectJson(int, field="id", schemas=False)


@dataclass(frozen=True)
class Item:
    id: int
    count: int
    body: str
    price: Annotated[Decimal, msgspec.Meta(extra={"scale": 2})] | None
    day: dt.date | None
    at: dt.datetime | None
    seen: dt.datetime | None


topology = ks.StreamsBuilder()
items = topology.table("shop.public.items", key=KEY, value=ks.Debezium(Item), materialized="items")
items.to_stream().to("rows", key=int, value=Item)
