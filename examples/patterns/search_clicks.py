"""Stream-stream join: which click followed which search of the same user within five seconds.

`kstreams run examples/patterns/search_clicks.py --until-end`; searches that led nowhere come out too, once no click can
follow any more.
"""

from datetime import timedelta

import msgspec

import kstreams as ks


class Search(msgspec.Struct, frozen=True):
    words: str


class Click(msgspec.Struct, frozen=True):
    page: str


class Outcome(msgspec.Struct, frozen=True):
    words: str
    page: str | None


def outcome(search: Search, click: Click | None) -> Outcome:
    return Outcome(search.words, None if click is None else click.page)


topology = ks.StreamsBuilder()
config = {"application.id": "search-clicks"}

searches = topology.stream("searches", key=str, value=Search)
clicks = topology.stream("clicks", key=str, value=Click)
searches.left_join(
    clicks,
    outcome,
    windows=ks.JoinWindows(before=timedelta(0), after=timedelta(seconds=5), grace=timedelta(seconds=10)),
).to("search-outcomes")
