"""The bursts are found, and nothing else."""

import data
import pytest
from app import Anomaly, topology


def test_bursts_are_anomalies(topology_test_driver):
    driver = topology_test_driver(topology)
    readings = driver.create_input_topic("readings", key=str, value=float)
    for sensor, reading, time_ms in data.readings():
        readings.pipe_input(sensor, reading, timestamp=time_ms)

    anomalies = driver.create_output_topic("anomalies", key=str, value=Anomaly).read_values()
    rows = list(data.readings())
    assert [anomaly.reading for anomaly in anomalies] == [rows[number][1] for number in data.BURSTS]
    assert [anomaly.z_score for anomaly in anomalies] == [pytest.approx(12, abs=2), pytest.approx(-9, abs=2)]
