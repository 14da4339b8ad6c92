"""External lookup: each click is joined with the profile of the user who clicked.

The profiles' topic is a table in the task's own store, so nobody is asked over the network; a profile that changes is
seen by the clicks after it: `kstreams run examples/patterns/click_profile.py --until-end`.
"""

import msgspec

import kstreams as ks


class Click(msgspec.Struct, frozen=True):
    page: str


class Profile(msgspec.Struct, frozen=True):
    name: str
    city: str


class ProfiledClick(msgspec.Struct, frozen=True):
    page: str
    name: str
    city: str


def with_profile(click: Click, profile: Profile | None) -> ProfiledClick:
    return ProfiledClick(click.page, *(("?", "?") if profile is None else (profile.name, profile.city)))


topology = ks.StreamsBuilder()
config = {"application.id": "click-profile"}

profiles = topology.table("profiles", key=str, value=Profile)
clicks = topology.stream("clicks", key=str, value=Click)
clicks.left_join(profiles, with_profile).to("profiled-clicks")
