"""Reprocessing: a better version reads everything again, beside the one in use; readers change over when it suits.

Each version has an application id of its own, so it has its own offsets and state, and its own output topic:

    kstreams run examples/patterns/reprocessing.py:v1 -c application.id=visits-v1 --until-end
    kstreams run examples/patterns/reprocessing.py:v2 -c application.id=visits-v2 --until-end

Version 2 counts the visits of a person, not of a spelling. When it has caught up, whoever read `visits-v1` reads
`visits-v2`, and version 1 is stopped; until then it can be gone back to.
"""

import kstreams as ks


def v1() -> ks.StreamsBuilder:
    """Visits per name as it was written."""
    builder = ks.StreamsBuilder()
    visits = builder.stream("visits", key=str, value=str)
    visits.group_by(lambda place, name: name, key=str).count(materialized="visits").to_stream().to("visits-v1")
    return builder


def v2() -> ks.StreamsBuilder:
    """Visits per name, however it was written."""
    builder = ks.StreamsBuilder()
    visits = builder.stream("visits", key=str, value=str).map_values(lambda name: name.strip().lower(), value=str)
    visits.group_by(lambda place, name: name, key=str).count(materialized="visits").to_stream().to("visits-v2")
    return builder


topology = v2
