"""The query server: the stores of a running application over HTTP. It needs the extra `server`."""

from kstreams.errors import EngineUnavailableError

try:
    from kstreams.server.application import HOSTS, application
    from kstreams.server.endpoint import Endpoint, QueryParameter
    from kstreams.server.limits import Limits
    from kstreams.server.serving import Server
except ModuleNotFoundError as error:
    if error.name not in ("starlette", "uvicorn", "httptools"):
        raise
    raise EngineUnavailableError(
        "the query server needs Starlette and uvicorn: install them with `pip install 'kstreams-dsl[server]'`"
    ) from error

__all__ = ["HOSTS", "Endpoint", "Limits", "QueryParameter", "Server", "application"]
