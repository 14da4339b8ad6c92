"""The counts are those of Python's Counter."""

from collections import Counter

import data
from app import topology


def test_each_word_is_counted(topology_test_driver):
    driver = topology_test_driver(topology)
    lines = driver.create_input_topic("lines", key=str, value=str)
    for key, line, time_ms in data.lines():
        lines.pipe_input(key, line, timestamp=time_ms)

    counts = driver.create_output_topic("word-counts", key=str, value=int).read_key_values_to_map()
    assert counts == Counter(word for _, line, _ in data.lines() for word in line.split())
