"""Only the stolen cards are reported, each once."""

import data
from app import Suspicion, topology


def test_stolen_cards_are_reported_once(topology_test_driver):
    driver = topology_test_driver(topology)
    payments = driver.create_input_topic("payments", key=str, value=dict)
    for card, payment, time_ms in data.payments():
        payments.pipe_input(card, payment, timestamp=time_ms)

    suspicions = driver.create_output_topic("suspicions", key=str, value=Suspicion).read_key_values()
    assert sorted(card for card, _ in suspicions) == sorted(data.STOLEN)
    assert all(suspicion.countries == 3 for _, suspicion in suspicions)


def test_two_countries_are_a_trip(topology_test_driver):
    driver = topology_test_driver(topology)
    payments = driver.create_input_topic("payments", key=str, value=dict)
    for minute, country in enumerate(["DE", "FR", "DE", "FR"]):
        payments.pipe_input("c", {"card": "c", "country": country, "cents": 1}, timestamp=minute * 60_000)

    assert driver.create_output_topic("suspicions", key=str, value=Suspicion).is_empty
