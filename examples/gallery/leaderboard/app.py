"""A leaderboard: the five players with the most points of each day, as the games come in."""

from datetime import timedelta

import msgspec

import kstreams as ks


class Game(msgspec.Struct, frozen=True):
    points: int


class Player(msgspec.Struct, frozen=True):
    name: str
    points: int


def on_its_day(player: ks.Windowed[str], points: int) -> tuple[int, Player]:
    return player.window.start_ms, Player(player.key, points)


config = {"application.id": "leaderboard"}
topology = ks.StreamsBuilder()

games = topology.stream("games", key=str, value=Game)
points = (
    games.map_values(ks.col("points"), value=int)
    .group_by_key()
    .windowed_by(ks.TimeWindows(size=timedelta(days=1), grace=timedelta(hours=1)))
    .reduce(lambda total, points: total + points)
)
best = points.group_by(on_its_day, key=int, value=Player).top_n(5, by=ks.col("points"))
best.to_stream().to("leaders")
