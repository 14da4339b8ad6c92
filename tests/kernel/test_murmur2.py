"""murmur2 is Java's, bit for bit: else a key would lie in another partition than Kafka's producer puts it."""

from pathlib import Path

from kstreams.kernel.murmur2 import murmur2, partition_of

GOLDEN = [line.split(" ") for line in Path(__file__).with_name("murmur2_java.txt").read_text().splitlines()[1:]]


def test_a_thousand_keys_hash_as_in_java():
    assert len(GOLDEN) == 1000
    assert [murmur2(bytes.fromhex(raw)) for raw, _, _ in GOLDEN] == [
        int(hashed) & 0xFFFFFFFF for _, hashed, _ in GOLDEN
    ]


def test_a_thousand_keys_go_to_the_partition_that_java_chooses():
    assert [partition_of(bytes.fromhex(raw), 12) for raw, _, _ in GOLDEN] == [int(place) for _, _, place in GOLDEN]
