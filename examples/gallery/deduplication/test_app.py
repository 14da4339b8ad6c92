"""Each delivery passes once, so the sums are right."""

from collections import Counter

import data
from app import Delivery, topology


def test_repeated_deliveries_count_once(topology_test_driver):
    driver = topology_test_driver(topology)
    deliveries = driver.create_input_topic("deliveries", key=str, value=dict)
    parcels = Counter()
    seen = set()
    for depot, delivery, time_ms in data.deliveries():
        deliveries.pipe_input(depot, delivery, timestamp=time_ms)
        if delivery["id"] not in seen:
            seen.add(delivery["id"])
            parcels[depot] += delivery["parcels"]

    once = driver.create_output_topic("deliveries-once", key=str, value=Delivery).read_values()
    assert [delivery.id for delivery in once] == [f"delivery-{number}" for number in range(400)]
    sums = driver.create_output_topic("parcels", key=str, value=dict).read_key_values_to_map()
    assert sums == {depot: {"parcels": total} for depot, total in parcels.items()}
