"""HTTP: polled addresses, server-sent events and webhooks as sources, requests as a sink. It needs the extra `http`."""

from kstreams.errors import ConnectorError

try:
    import httpx  # noqa: F401 (every module of this package needs it)
except ModuleNotFoundError as error:
    raise ConnectorError("HTTP needs httpx: install it with `pip install 'kstreams-dsl[http]'`") from error
