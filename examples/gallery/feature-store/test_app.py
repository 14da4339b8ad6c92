"""The store has the features that statistics over each customer's purchases give."""

from collections import defaultdict
from statistics import fmean

import data
import pytest
from app import topology


def test_features_of_each_customer(topology_test_driver):
    driver = topology_test_driver(topology)
    topic = driver.create_input_topic("purchases", key=str, value=dict)
    by_customer = defaultdict(list)
    for customer, purchase, time_ms in data.purchases():
        topic.pipe_input(customer, purchase, timestamp=time_ms)
        by_customer[customer].append(purchase)

    store = driver.get_key_value_store("features")
    for customer, purchases in by_customer.items():
        features = store.get(customer)
        cents = [purchase["cents"] for purchase in purchases]
        assert (features.purchases, features.highest_cents) == (len(purchases), max(cents))
        assert features.mean_cents == pytest.approx(fmean(cents))
        assert features.shops == len({purchase["shop"] for purchase in purchases})
        assert features.last_shop == purchases[-1]["shop"]
