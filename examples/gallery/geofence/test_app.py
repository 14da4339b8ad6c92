"""Crossings are where two positions of a vehicle that follow each other differ."""

from collections import defaultdict

import data
from app import Area, Crossing, Position, is_inside, topology


def expected_crossings():
    areas = {name: Area(**area) for name, area, _ in data.areas()}
    before = defaultdict(set)
    for vehicle, place, _ in data.positions():
        now = {name for name, area in areas.items() if is_inside(Position(**place), area)}
        yield from ((vehicle, Crossing(name, name in now)) for name in sorted(before[vehicle] ^ now))
        before[vehicle] = now


def test_vehicles_enter_and_leave(topology_test_driver):
    driver = topology_test_driver(topology)
    for topic, rows in data.TOPICS.items():
        records = driver.create_input_topic(topic, key=str, value=dict)
        for key, value, time_ms in rows():
            records.pipe_input(key, value, timestamp=time_ms)

    crossings = driver.create_output_topic("crossings", key=str, value=Crossing).read_key_values()
    assert crossings == list(expected_crossings())
    assert len(crossings) >= 3 * 4
