"""Works off the first half of the flights on Spark and goes on natively with the second; or the other way round.

    python examples/flights/backfill.py                  # or a number: only so many flights
    python examples/flights/backfill.py 6000 native      # the engine that begins

Both engines write to the same topics: the results are those of one engine alone.
"""

from __future__ import annotations

import shutil
import sys
from datetime import datetime
from pathlib import Path

from load import Message, airlines, create_topics, flights, weather, write

from kstreams import app as application
from kstreams.config import Config
from kstreams.log import open_log

APP = Path(__file__).with_name("app.py")
STATE = Path("backfilled")
GOES_ON = {"spark": "native", "native": "spark"}


def main(sample: int | None = None, first: str = "spark") -> None:
    """Both halves, one after the other."""
    streams = {"weather": list(weather(sample)), "flights": list(flights(sample))}
    half = streams["flights"][len(streams["flights"]) // 2][2]
    with open_log(Config.load()["log.dir"]) as log, log.admin() as admin:
        create_topics(admin)
        write(log, "airlines", airlines())
        for topic, messages in streams.items():
            write(log, topic, (message for message in messages if is_before(message, half)))
    flights_app = application.load_app(APP, {"spark.kstreams.prefix": ""})
    for engine in GOES_ON:
        application.reset(flights_app, engine)

    application.run(flights_app, first, once=True)  # a year of them, on a cluster: kstreams submit app.py --once
    shutil.rmtree(STATE, ignore_errors=True)
    application.export_state(flights_app, STATE, first)
    application.import_state(flights_app, STATE, GOES_ON[first])

    with open_log(Config.load()["log.dir"]) as log:
        for topic, messages in streams.items():
            write(log, topic, (message for message in messages if not is_before(message, half)))
    application.run(flights_app, GOES_ON[first], until_end=True)


def is_before(message: Message, time: datetime) -> bool:
    return message[2] < time


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None, *sys.argv[2:])
