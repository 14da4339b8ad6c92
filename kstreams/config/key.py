"""`Key`: what is known of one configuration key."""

from __future__ import annotations

from dataclasses import dataclass

from kstreams.config.kinds import Kind


@dataclass(frozen=True, slots=True)
class Key:
    """One configuration key.

    Parameters
    ----------
    name : str
        Kafka Streams' name, with dots.
    kind : Kind
        How values are read and checked.
    default : object
        The value of a key that is not set; None if it has no default.
    doc : str
        One sentence for the reference page.
    used : bool
        False for a key of Kafka Streams that is accepted, so that existing configurations run,
        but changes nothing here.
    own : bool
        True for a key that Kafka Streams does not have.
    """

    name: str
    kind: Kind
    default: object
    doc: str
    used: bool = True
    own: bool = False
