"""What the configuration says to the group of an application."""

from __future__ import annotations

from kstreams.config import Config
from kstreams.runtime.native.assignment.clients import AssignmentRules
from kstreams.runtime.native.group.messages import ProcessState


def assignment_rules(config: Config) -> AssignmentRules:
    """How tasks are assigned.

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
    """What a process tells of itself at its start."""
    tags = {name: str(value) for name, value in config.prefixed("client.tag.").items()}
    return ProcessState(
        process, capacity=config["num.stream.threads"], tags=tags, server=config["application.server"] or ""
    )
