"""A feature store: what a model wants to know of a customer, answered over HTTP while purchases come in.

`kstreams run app.py --serve` answers `kstreams query features customer-7`. Needs `pip install 'kstreams-dsl[server]'`.
"""

import msgspec

import kstreams as ks


class Purchase(msgspec.Struct, frozen=True):
    shop: str
    cents: int


class Features(msgspec.Struct, frozen=True):
    purchases: int
    mean_cents: float
    highest_cents: int
    shops: int
    last_shop: str


config = {"application.id": "feature-store"}
topology = ks.StreamsBuilder()

purchases = topology.stream("purchases", key=str, value=Purchase)
features = purchases.group_by_key().aggregate(
    purchases=ks.len(),
    mean_cents=ks.col("cents").mean(),
    highest_cents=ks.col("cents").max(),
    shops=ks.col("shop").n_unique(),
    last_shop=ks.col("shop").last(),
    value=Features,
    materialized=ks.Materialized("features", queryable=True),
)
features.to_stream().to("features")
