"""Requests and errors are what a regular expression of Python finds."""

import re
from collections import defaultdict

import data
from app import Minute, topology

REQUEST = re.compile(r'"GET ([^?]+)\?id=\d+ HTTP/1.1" (\d+)')


def test_requests_of_each_minute(topology_test_driver):
    driver = topology_test_driver(topology)
    lines = driver.create_input_topic("access-log", key=str, value=str)
    statuses = defaultdict(list)
    odd = []
    for server, line, time_ms in data.lines():
        lines.pipe_input(server, line, timestamp=time_ms)
        if match := REQUEST.search(line):
            statuses[f"{match[1]}@{time_ms // 60_000 * 60_000}"].append(int(match[2]))
        else:
            odd.append(line)

    minutes = driver.create_output_topic("requests-per-minute", key=str, value=Minute).read_key_values_to_map()
    assert minutes == {
        minute: Minute(len(of_minute), sum(status >= 500 for status in of_minute))
        for minute, of_minute in statuses.items()
    }
    assert driver.create_output_topic("odd-lines", key=str, value=str).read_values() == odd
