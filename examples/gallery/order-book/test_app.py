"""The quotes are those of a dict of open orders."""

import data
from app import Quote, topology


def quote_of(orders):
    bids = [order for order in orders if order["is_bid"]]
    offers = [order for order in orders if not order["is_bid"]]
    return Quote(
        max((order["price"] for order in bids), default=None),
        min((order["price"] for order in offers), default=None),
        sum(order["quantity"] for order in bids),
        sum(order["quantity"] for order in offers),
    )


def test_quotes_follow_the_open_orders(topology_test_driver):
    driver = topology_test_driver(topology)
    orders = driver.create_input_topic("orders", key=int, value=dict)
    quotes = driver.create_output_topic("quotes", key=str, value=Quote)
    open_orders = {}
    for number, order, time_ms in data.orders():
        orders.pipe_input(number, order, timestamp=time_ms)
        before = open_orders.pop(number, None)
        if order is not None:
            open_orders[number] = order
        share = (order or before)["share"]
        last = quotes.read_key_values()[-1]
        assert last == (share, quote_of([order for order in open_orders.values() if order["share"] == share]))
