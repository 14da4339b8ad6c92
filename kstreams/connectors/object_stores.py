"""Refusals of object stores: the errors of obstore, deltalake and pyarrow that trying again does not heal.

These libraries have no types for them, but pass on the answer of the store.
"""

from __future__ import annotations

import re

_REMEDIES = {
    re.compile(r"NoSuchBucket|NO_SUCH_BUCKET|ContainerNotFound|bucket does not exist"): (
        "Create the bucket, or correct its name"
    ),
    re.compile(r"403 Forbidden|401 Unauthorized|ACCESS_DENIED|AccessDenied|lacked the necessary|Permission denied"): (
        "Check the credentials and the rights"
    ),
}


def remedy(error: BaseException) -> str:
    """Return what to do about an error of a store. Empty if trying again may help.

    Examples
    --------
    >>> remedy(OSError("404 Not Found: <Error><Code>NoSuchBucket</Code>"))
    'Create the bucket, or correct its name'
    >>> remedy(OSError("503 Slow Down"))
    ''
    """
    text = str(error)
    return next((remedy for cause, remedy in _REMEDIES.items() if cause.search(text)), "")
