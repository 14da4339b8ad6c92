"""The broker of tests starts with every id that it may draw."""

from tests.support.kafka_cluster import _cluster_id


def test_no_id_of_a_cluster_looks_like_an_option() -> None:
    assert not [each for each in (_cluster_id() for _ in range(2_000)) if each.startswith("-") or len(each) != 22]
