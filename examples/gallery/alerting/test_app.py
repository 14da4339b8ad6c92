"""An alert is raised above 80, cleared below 70, and silent in between."""

import data
from app import Alert, topology


def test_alerts_do_not_flicker(topology_test_driver):
    driver = topology_test_driver(topology)
    usage = driver.create_input_topic("disk-usage", key=str, value=int)
    for percent in [79, 81, 79, 82, 71, 69, 75, 81]:
        usage.pipe_input("m", percent)

    alerts = driver.create_output_topic("alerts", key=str, value=Alert).read_values()
    assert alerts == [Alert(True, 81), Alert(False, 69), Alert(True, 81)]


def test_each_machine_has_an_alert_of_its_own(topology_test_driver):
    driver = topology_test_driver(topology)
    usage = driver.create_input_topic("disk-usage", key=str, value=int)
    raised = dict.fromkeys(["machine-0", "machine-1", "machine-2"], False)
    expected = []
    for machine, percent, time_ms in data.usage():
        usage.pipe_input(machine, percent, timestamp=time_ms)
        if percent < 70 if raised[machine] else percent > 80:
            raised[machine] = not raised[machine]
            expected.append((machine, Alert(raised[machine], percent)))

    assert expected
    assert driver.create_output_topic("alerts", key=str, value=Alert).read_key_values() == expected
