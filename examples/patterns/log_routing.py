"""Single event: each log line is looked at alone; errors go to a topic of their own, the rest to one topic per service.

No state, so any number of tasks work side by side: `kstreams run examples/patterns/log_routing.py --until-end`.
"""

import msgspec

import kstreams as ks


class LogLine(msgspec.Struct, frozen=True):
    service: str
    level: str
    message: str


topology = ks.StreamsBuilder()
config = {"application.id": "log-routing"}

lines = topology.stream("log-lines", key=str, value=LogLine)
ways = (
    lines.split(name="level-")
    .branch(ks.col("level") == "ERROR", name="error")
    .branch(ks.col("level") != "DEBUG", name="other")
    .no_default_branch()
)
ways["level-error"].to("errors")
ways["level-other"].map_values(lambda line: f"{line.level} {line.message}", value=str).to("messages")
