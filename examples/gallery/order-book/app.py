"""An order book: the best bid, the best offer and their depth, from orders that are placed, changed and cancelled."""

import msgspec

import kstreams as ks


class Order(msgspec.Struct, frozen=True):
    share: str
    is_bid: bool
    price: int  # cents
    quantity: int


class Quote(msgspec.Struct, frozen=True):
    bid: int | None
    offer: int | None
    bid_quantity: int
    offer_quantity: int


config = {"application.id": "order-book"}
topology = ks.StreamsBuilder()

orders = topology.table("orders", key=int, value=Order)
is_bid = ks.col("is_bid")
quotes = orders.group_by((ks.col("share"), ks.value)).aggregate(
    bid=ks.when(is_bid).then(ks.col("price")).max(),
    offer=ks.when(~is_bid).then(ks.col("price")).min(),
    bid_quantity=ks.when(is_bid).then(ks.col("quantity")).otherwise(0).sum(),
    offer_quantity=ks.when(~is_bid).then(ks.col("quantity")).otherwise(0).sum(),
    value=Quote,
)
quotes.to_stream().to("quotes")
