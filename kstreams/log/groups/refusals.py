"""Why a commit for a group is refused: the errors, in the same words from every home."""

from __future__ import annotations

from kstreams.errors import CommitFailedError, FencedError, RebalanceInProgressError


def for_members_alone(group: str) -> CommitFailedError:
    """The error for who commits from outside."""
    return CommitFailedError(
        f"Offsets of the group {group!r} are committed by its members as long as it has some: stop them first."
    )


def no_member(group: str, member: str) -> CommitFailedError:
    """The error for a member that is out."""
    return CommitFailedError(
        f"{member} is no member of the group {group!r} any more, and its partitions may belong to others by now: "
        "poll to join again, and read on from what is committed."
    )


def former_member(group: str, member: str) -> FencedError:
    """The error for records of a member that is out."""
    return FencedError(
        f"{member} is no member of the group {group!r} any more: what it had not written yet is not written, since "
        "others may have its partitions. Join again, and read on from what is committed."
    )


def of_another_generation(group: str, generation: int) -> CommitFailedError:
    """The error for a member that has missed a generation, or tells an older one."""
    return CommitFailedError(
        f"The group {group!r} has gone on, and the commit is of generation {generation}: its partitions may belong to "
        "others by now. Poll to join again, and read on from what is committed."
    )


def replaced(group: str, instance: str | None) -> FencedError:
    """The error for a static member that was started a second time."""
    return FencedError(
        f"Another consumer has taken the `group.instance.id` {instance!r} of the group {group!r}: close this one."
    )


def dividing(group: str) -> RebalanceInProgressError:
    """The error for a commit between two generations."""
    return RebalanceInProgressError(
        f"The group {group!r} is dividing its partitions: poll, then commit again what is still assigned."
    )
