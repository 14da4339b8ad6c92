"""Logs of a web server: requests and errors of each path and minute, by expressions, which run on whole columns."""

from datetime import timedelta

import msgspec

import kstreams as ks


class Request(msgspec.Struct, frozen=True):
    path: str | None
    status: int | None


class Minute(msgspec.Struct, frozen=True):
    requests: int
    errors: int


config = {"application.id": "log-parsing"}
topology = ks.StreamsBuilder()

lines = topology.stream("access-log", key=str, value=str)
ways = lines.split(name="line-").branch(ks.value.str.contains(' HTTP/1.1" '), name="request").default_branch(name="odd")
ways["line-odd"].to("odd-lines")

request = ks.struct(
    path=ks.value.str.extract(r'"[A-Z]+ ([^ ?"]+)'),
    status=ks.value.str.extract(r'" ([0-9]{3}) ').str.to_integer(),
)
minutes = (
    ways["line-request"]
    .map_values(request, value=Request)
    .group_by(ks.col("path"), key=str)
    .windowed_by(ks.TimeWindows(size=timedelta(minutes=1), grace=timedelta(seconds=10)))
    .aggregate(requests=ks.len(), errors=ks.when(ks.col("status") >= 500).then(1).otherwise(0).sum(), value=Minute)
)
minutes.to_stream(lambda path, _: f"{path.key}@{path.window.start_ms}", key=str).to("requests-per-minute")
