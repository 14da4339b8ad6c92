"""`Key`: the declaration of a configuration key."""

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
        The kind of values, which reads and checks them.
    default : object
        The value if the key is not set. None if there is no default.
    doc : str
        One sentence for the reference page.
    used : bool
        False for a key of Kafka Streams that has no effect in kstreams. It is accepted, so that existing
        configurations run.
    own : bool
        True for a key that Kafka Streams does not have.
    """

    name: str
    kind: Kind
    default: object
    doc: str
    used: bool = True
    own: bool = False
