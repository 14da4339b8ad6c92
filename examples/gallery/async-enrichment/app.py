"""Enrichment by a web service: each address is looked up by HTTP, fifty at a time, and results stay in order.

`python service.py` is a service to try it with. Needs `pip install 'kstreams-dsl[http]'`.
"""

import os
from functools import cache

import httpx
import msgspec

import kstreams as ks

SERVICE = os.environ.get("SERVICE", "http://127.0.0.1:8099")


class Parcel(msgspec.Struct, frozen=True):
    id: int
    postcode: str


class Addressed(msgspec.Struct, frozen=True):
    id: int
    postcode: str
    city: str


@cache
def client() -> httpx.AsyncClient:
    """Return the client that all calls of the process share."""
    return httpx.AsyncClient(base_url=SERVICE, timeout=5)


async def with_city(parcel: Parcel) -> Addressed:
    answer = await client().get(f"/cities/{parcel.postcode}")
    answer.raise_for_status()
    return Addressed(parcel.id, parcel.postcode, answer.json()["city"])


config = {"application.id": "async-enrichment"}
topology = ks.StreamsBuilder()

parcels = topology.stream("parcels", key=str, value=Parcel)
parcels.map_values(with_city, concurrency=50, timeout=10_000, value=Addressed).to("addressed-parcels")
