"""Sums per key, over input of which some does not decode, some fails in a function, and some has no key."""

import kstreams as ks

config = {
    "deserialization.exception.handler": "continue",
    "processing.exception.handler": "continue",
    "errors.dead.letter.queue.topic.name": "letters",
    "errors.dead.letter.queue.dropped.records": True,
}

topology = ks.StreamsBuilder()

numbers = topology.stream("numbers", key=str, value=str).map_values(int, value=int)
numbers.group_by_key().reduce(lambda a, b: a + b, materialized="sums").to_stream().to("sums")
