"""What keys and values are read as: the types on the command line, else those in the topic settings, or a guess."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from kstreams.errors import KStreamsError, SerdeError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.topic_types import MIXED
from kstreams.record import Headers
from kstreams.serdes.base import SerdeUse
from kstreams.serdes.byte_kinds import AUTO, is_known
from kstreams.serdes.topic_decoders import Decode, needs_registry, topic_decoder

Place = tuple[TopicPartition, int]
Reader = Callable[[bytes | None, Headers, Place], Any]


def reader_of(side: str, requested: str | None, noted: str | None, use: SerdeUse | None = None) -> Reader:
    """The function that reads keys or values.

    Bytes that are not of the type that was asked for are an error. Those that are not of the type that the topic's
    settings name are guessed, and a warning about the first of them goes to standard error.

    Parameters
    ----------
    side : {"key", "value"}
    requested : str or None
        The type that the command line gives.
    noted : str or None
        What the settings of the topic say.
    use : SerdeUse, optional
        The topic with its schema registry, where there is one.

    Examples
    --------
    >>> read = reader_of("value", None, "int")
    >>> read(bytes(8), (), (TopicPartition("numbers", 0), 0))
    0
    """
    if requested is not None:
        if use is None and needs_registry(requested):
            raise SerdeError(f"{requested} is read with a schema registry: set schema.registry.url")
        return _strict(side, topic_decoder(requested, use, _tell))
    if noted == MIXED:
        sys.stderr.write(f"kstreams: the {side}s were written as several types: guessed, unless --{side}-type says\n")
    if noted is None or noted == MIXED or not is_known(noted):
        guess = topic_decoder(AUTO, use, _tell)
        return lambda data, headers, place: guess(data, headers)
    return _lenient(side, noted, use)


def _tell(error: KStreamsError) -> None:
    sys.stderr.write(f"kstreams: what is shown is guessed without the schema registry: {error}\n")


def _strict(side: str, read: Decode) -> Reader:
    def checked(data: bytes | None, headers: Headers, place: Place) -> Any:
        try:
            return read(data, headers)
        except SerdeError as error:
            raise SerdeError(f"{place[0]}@{place[1]}: {error}; try another --{side}-type") from error

    return checked


def _lenient(side: str, noted: str, use: SerdeUse | None) -> Reader:
    read = topic_decoder(noted, use)
    guess = topic_decoder(AUTO, use, _tell)
    warned = False

    def best(data: bytes | None, headers: Headers, place: Place) -> Any:
        nonlocal warned
        try:
            return read(data, headers)
        except SerdeError:
            if not warned:
                sys.stderr.write(
                    f"kstreams: the {side} of {place[0]}@{place[1]} is no {noted}, as the topic's settings say: "
                    "it is guessed, as are others of the kind\n"
                )
            warned = True
            return guess(data, headers)

    return best
