"""The counts of each city are those of the rows that are left."""

from collections import Counter

import data
import pytest

pytest.importorskip("deltalake", reason="pip install 'kstreams-dsl[delta]'")


def test_cities_count_the_rows_of_now(topology_test_driver, tmp_path, monkeypatch):
    monkeypatch.setenv("LAKE", str(tmp_path))
    from app import topology

    driver = topology_test_driver(topology)
    events = driver.create_input_topic("shop.public.customers", key=dict, value=dict)
    rows = {}
    for key, event, time_ms in data.events():
        events.pipe_input(key, event, timestamp=time_ms)
        if event is not None:
            rows[key["id"]] = event["after"]

    counts = driver.create_output_topic("customers-by-city", key=str, value=dict).read_key_values_to_map()
    expected = Counter(row["city"] for row in rows.values() if row is not None)
    assert counts == {city: {"customers": count} for city, count in expected.items()}
