"""Each parcel has the city of its postcode, in the order of the parcels."""

from http.server import ThreadingHTTPServer
from threading import Thread

import data
import pytest
from service import CITIES, Cities

pytest.importorskip("httpx", reason="pip install 'kstreams-dsl[http]'")


@pytest.fixture
def service(monkeypatch):
    with ThreadingHTTPServer(("127.0.0.1", 0), Cities) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("SERVICE", f"http://127.0.0.1:{server.server_port}")
        yield
        server.shutdown()


def test_each_parcel_has_its_city(topology_test_driver, service):
    from app import Addressed, topology

    driver = topology_test_driver(topology)
    parcels = driver.create_input_topic("parcels", key=str, value=dict)
    for depot, parcel, time_ms in data.parcels():
        parcels.pipe_input(depot, parcel, timestamp=time_ms)

    addressed = driver.create_output_topic("addressed-parcels", key=str, value=Addressed).read_values()
    assert [parcel.id for parcel in addressed] == list(range(200))
    assert all(parcel.city == CITIES[parcel.postcode[:2]] for parcel in addressed)
