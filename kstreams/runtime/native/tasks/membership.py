"""`group_member` and `ungrouped_commits`: how a process commits, as a member of a group or in a bounded run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kstreams.config import Config
from kstreams.runtime.native.assignment.clients import AssignmentRules
from kstreams.runtime.native.group.former_member import FormerMember
from kstreams.runtime.native.group.member import GroupMember
from kstreams.runtime.native.group.messages import ProcessState
from kstreams.runtime.native.group.ungrouped_commits import UngroupedCommits
from kstreams.runtime.native.runtime_context import Environment, consumer_settings


def assignment_rules(config: Config) -> AssignmentRules:
    """Return the settings of the assignment.

    Examples
    --------
    >>> assignment_rules(Config.of({"num.standby.replicas": 1})).num_standby_replicas
    1
    """
    return AssignmentRules(
        config["num.standby.replicas"],
        config["max.warmup.replicas"],
        config["acceptable.recovery.lag"],
        tuple(config["rack.aware.assignment.tags"]),
    )


def process_state(process: str, config: Config) -> ProcessState:
    """Return the first state that a process announces."""
    tags = {name: str(value) for name, value in config.prefixed("client.tag.").items()}
    return ProcessState(
        process, capacity=config["num.stream.threads"], tags=tags, server=config["application.server"] or ""
    )


def ungrouped_commits(environment: Environment) -> UngroupedCommits:
    """Create the commits of a bounded run, which commits for the whole group."""
    return UngroupedCommits(
        environment.log,
        environment.admin,
        environment.application_id,
        process_state(environment.process_id, environment.config),
        transactional=environment.exactly_once,
    )


def group_member(environment: Environment, folder: Path, on_failure: Callable[[BaseException], None]) -> GroupMember:
    """Create a member of the group, which takes the place of the last one on a state folder.

    `on_failure` is called with the error that ends its membership.
    """
    config = environment.config
    process = process_state(environment.process_id, config)
    settings = consumer_settings(config, "main")
    return GroupMember(
        environment.log,
        environment.application_id,
        settings,
        process,
        assignment_rules(config),
        on_failure,
        former_member=FormerMember(folder),
    )
