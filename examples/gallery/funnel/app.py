"""A funnel: of those who viewed a product, how many put it into the basket, and how many bought it, within an hour."""

from datetime import timedelta

import msgspec

import kstreams as ks


class Event(msgspec.Struct, frozen=True):
    step: str  # view, basket or purchase
    product: str


class Funnel(msgspec.Struct, frozen=True):
    views: int
    baskets: int
    purchases: int


def later(first: Event, second: Event) -> Event:
    return second


config = {"application.id": "funnel"}
topology = ks.StreamsBuilder()

events = topology.stream("events", key=str, value=Event)
by_visitor_and_product = events.select_key(lambda visitor, event: f"{visitor}/{event.product}", key=str)
steps = by_visitor_and_product.split(name="step-")
for step in ("view", "basket", "purchase"):
    steps = steps.branch(ks.col("step") == step, name=step)
branches = steps.no_default_branch()

within_an_hour = ks.JoinWindows(before=timedelta(0), after=timedelta(hours=1), grace=timedelta(minutes=5))
views = branches["step-view"]
baskets = views.join(branches["step-basket"], later, windows=within_an_hour, value=Event)
purchases = baskets.join(branches["step-purchase"], later, windows=within_an_hour, value=Event)

is_at = {step: ks.when(ks.col("step") == step).then(1).otherwise(0) for step in ("view", "basket", "purchase")}
funnels = (
    views.merge(baskets)
    .merge(purchases)
    .group_by(ks.col("product"))
    .aggregate(
        views=is_at["view"].sum(), baskets=is_at["basket"].sum(), purchases=is_at["purchase"].sum(), value=Funnel
    )
)
funnels.to_stream().to("funnels")
