"""Texts in capitals, by a call that fails at random; the application is killed while records wait."""

import os
import random

import kstreams as ks

moments = random.Random(os.getpid())


def call(value: str) -> str:
    if moments.random() < 0.2:
        raise TimeoutError(value)
    return value.upper()


topology = ks.StreamsBuilder()
retry = ks.Retry(backoff="10ms", factor=3, max_delay="100ms", attempts=3, on=TimeoutError)
stream = topology.stream("in", key=str, value=str)
stream.map_values(call, retry=retry, park="parked").delay(for_="1ms").to("out")
