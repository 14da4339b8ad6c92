"""`route_path`: the path of a request below the place where the application stands."""

from __future__ import annotations

from starlette.types import Scope


def route_path(scope: Scope) -> str:
    """The path without that of the mount, and of a proxy in front, whether that takes its own away or not.

    Examples
    --------
    >>> route_path({"path": "/api/shop/v1/stores", "root_path": "/api/shop", "app_root_path": "/api"})
    '/v1/stores'
    >>> route_path({"path": "/shop/v1/stores", "root_path": "/api/shop", "app_root_path": "/api"})
    '/v1/stores'
    """
    path: str = scope["path"]
    whole: str = scope.get("root_path", "")
    for prefix in (whole, whole.removeprefix(scope.get("app_root_path", ""))):
        if prefix and path.startswith(f"{prefix}/"):
            return path[len(prefix) :]
    return path
