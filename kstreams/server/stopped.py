"""Rows of an application that has ended, as its last commit left them on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kstreams.config import Config
from kstreams.errors import StateError
from kstreams.runtime.native.state.stopped_stores import StoppedStores
from kstreams.runtime.native.state.store_descriptions import StoreDescriptions
from kstreams.server.limits import Limits
from kstreams.server.readings import Row, RowsQuery
from kstreams.server.refusal import Refusal
from kstreams.server.store_query import read_question


def stopped_rows(
    kept: StoreDescriptions, config: Config, store: str, given: Mapping[str, str], key: str | None
) -> Iterator[Row]:
    """The rows that parameters of a request ask for, all of them.

    Raises
    ------
    StateError
        When the application runs or has no state here, or the parameters make no sense.
    """
    builder = kept.builder(store)
    try:
        question = read_question(builder, given, Limits(), key)
    except Refusal as refusal:
        raise StateError(refusal.reason) from None
    find = question.reading.scan if key is None else question.reading.by_key
    if find is None:
        raise StateError(f"a {builder.kind.name} store cannot be asked so")
    query = RowsQuery(find, question.asked, None, None, (builder.kind.name,))
    with StoppedStores(kept, config) as stores:
        for partition in stores.partitions(store):
            for entry in partition.begin(query.ask)().value or ():
                yield question.reading.row(builder, *entry)
