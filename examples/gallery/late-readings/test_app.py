"""Readings within the grace count; the others are in the topic of those that came too late."""

from collections import defaultdict

import data
from app import Minute, config, topology

MINUTE_MS = 60_000
GRACE_MS = 30_000


def expected_minutes():
    stream_time = 0
    minutes = defaultdict(list)
    late = 0
    for sensor, reading, time_ms in data.readings():
        stream_time = max(stream_time, time_ms)
        start = time_ms // MINUTE_MS * MINUTE_MS
        if start + MINUTE_MS + GRACE_MS > stream_time:
            minutes[f"{sensor}@{start}"].append(reading["celsius"])
        else:
            late += 1
    return {minute: Minute(len(values), min(values), max(values)) for minute, values in minutes.items()}, late


def test_minutes_are_final_and_late_readings_are_put_aside(topology_test_driver):
    driver = topology_test_driver(topology, config)
    readings = driver.create_input_topic("readings", key=str, value=dict)
    for sensor, reading, time_ms in data.readings():
        readings.pipe_input(sensor, reading, timestamp=time_ms)
    driver.end_of_input()

    minutes, late = expected_minutes()
    assert late > 0
    assert driver.create_output_topic("minutes", key=str, value=Minute).read_key_values_to_map() == minutes
    assert len(driver.create_output_topic("too-late", key=str, value=dict).read_values()) == late
