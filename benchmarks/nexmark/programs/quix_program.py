"""A query of Nexmark on Quix Streams: see kstreams_program.py. Each step by key goes through a repartition topic."""

import json
import os

from keyed_steps import Half, query_of, side_input
from quixstreams import Application
from quixstreams.models import Serializer


class JsonOfValue(Serializer):
    """Writes the value of a result."""

    def __call__(self, value, ctx):
        return json.dumps(query.value(value), separators=(",", ":")).encode()


if __name__ == "__main__":
    name = os.environ["QUERY"]
    bootstrap = os.environ["BOOTSTRAP"]
    query = query_of(name, lambda: side_input(bootstrap))
    half = Half(int(os.environ["EVENTS"]))
    app = Application(
        bootstrap,
        consumer_group=os.environ["ID"],
        auto_offset_reset="earliest",
        state_dir=os.environ["STATE"],
        loglevel="WARNING",
    )
    events = app.topic("nexmark", key_deserializer="bytes", value_deserializer="json")
    rows = app.dataframe(events).apply(lambda event: list(query.rows(half.count(event))), expand=True)
    for number, step in enumerate(query.steps):
        rows = rows.group_by(step.key, name=f"step-{number}")
        rows = rows.apply(lambda row, state, step=step.step: step(state, row), stateful=True, expand=True)
    results = app.topic(name, key_serializer="str", value_serializer=JsonOfValue())
    rows.to_topic(results, key=query.key)
    app.run()
