"""`CommitRequest`: whether a processor has asked for a commit."""

from __future__ import annotations


class CommitRequest:
    """The request of the processors of one task; it holds until the next flush.

    Examples
    --------
    >>> request = CommitRequest()
    >>> request.make()
    >>> request.is_made
    True
    """

    __slots__ = ("is_made",)

    def __init__(self) -> None:
        self.is_made = False

    def make(self) -> None:
        """Ask for a commit soon."""
        self.is_made = True

    def clear(self) -> None:
        """The commit comes."""
        self.is_made = False
