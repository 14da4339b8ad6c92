"""`stopped_rows`: the rows of a stopped application in its state on this machine, as of the last commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kstreams.config import Config
from kstreams.errors import StateError
from kstreams.runtime.native.state.stopped_stores import StoppedStores, StoreDescriptions
from kstreams.server.http_error import HttpError
from kstreams.server.limits import Limits
from kstreams.server.store_query import parse_store_query
from kstreams.state.store_builder import Row


def stopped_rows(
    descriptions: StoreDescriptions, config: Config, store: str, parameters: Mapping[str, str], key: str | None
) -> Iterator[Row]:
    """Yield all rows that the parameters of a request select.

    Raises
    ------
    StateError
        If the application runs or has no state here, or the parameters are no query for the store.
    """
    builder = descriptions.builder(store)
    try:
        query = parse_store_query(builder, parameters, Limits())
        rows = query.rows if key is None else query.of_key(key).rows
    except HttpError as error:
        raise StateError(error.reason) from None
    with StoppedStores(descriptions, config) as stores:
        for partition in stores.partitions(store):
            for entry in partition.begin(rows.read)().value or ():
                yield rows.reader.row(builder, *entry)
