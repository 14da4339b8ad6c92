"""The application that tests of retained joins kill: orders with payments of any time, and within a retention."""

import kstreams as ks

topology = ks.StreamsBuilder()

orders = topology.stream("orders", key=str, value=str)
payments = topology.stream("payments", key=str, value=str)


def paid(order: str | None, payment: str | None) -> str:
    """Return both texts."""
    return f"{order}:{payment}"


orders.join(payments, paid, retain=None, name="ever", store_name="ever").to("paid")
orders.outer_join(payments, paid, retain=500, name="soon", store_name="soon").to("soon")
