"""Click enrichment: who clicked (a table of profiles), and after which search of the second before (another stream).

`kstreams run examples/classics/click_enrichment.py --until-end`.
"""

from datetime import timedelta

import msgspec

import kstreams as ks


class Profile(msgspec.Struct, frozen=True):
    name: str
    city: str


class Search(msgspec.Struct, frozen=True):
    words: str


class Click(msgspec.Struct, frozen=True):
    page: str


class Activity(msgspec.Struct, frozen=True):
    page: str
    name: str | None = None
    city: str | None = None
    words: str | None = None


def with_profile(click: Click, profile: Profile | None) -> Activity:
    return Activity(click.page) if profile is None else Activity(click.page, profile.name, profile.city)


def with_search(activity: Activity, search: Search | None) -> Activity:
    return activity if search is None else msgspec.structs.replace(activity, words=search.words)


topology = ks.StreamsBuilder()
config = {"application.id": "click-enrichment"}

clicks = topology.stream("clicks", key=str, value=Click)
profiles = topology.table("profiles", key=str, value=Profile)
searches = topology.stream("searches", key=str, value=Search)
(
    clicks.left_join(profiles, with_profile, value=Activity)
    .left_join(
        searches,
        with_search,
        windows=ks.JoinWindows(before=timedelta(seconds=1), after=timedelta(0), grace=timedelta(seconds=10)),
    )
    .to("activities")
)
