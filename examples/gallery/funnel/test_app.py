"""The funnel of each product is what a loop over each visitor's steps counts."""

from collections import defaultdict

import data
from app import Funnel, topology

HOUR_MS = 3_600_000


def expected_funnels():
    times = defaultdict(dict)
    for visitor, event, time_ms in data.events():
        times[visitor, event["product"]][event["step"]] = time_ms
    counts = defaultdict(lambda: [0, 0, 0])
    for (_, product), steps in times.items():
        counts[product][0] += 1
        if "basket" in steps and steps["basket"] - steps["view"] <= HOUR_MS:
            counts[product][1] += 1
            if "purchase" in steps and steps["purchase"] - steps["basket"] <= HOUR_MS:
                counts[product][2] += 1
    return {product: Funnel(*of_product) for product, of_product in counts.items()}


def test_steps_within_an_hour_count(topology_test_driver):
    driver = topology_test_driver(topology)
    events = driver.create_input_topic("events", key=str, value=dict)
    for visitor, event, time_ms in data.events():
        events.pipe_input(visitor, event, timestamp=time_ms)

    funnels = driver.create_output_topic("funnels", key=str, value=Funnel).read_key_values_to_map()
    assert funnels == expected_funnels()
