"""Requests about groups that Kafka's client does not offer: the broker of a group, and the removal of a member."""

from __future__ import annotations

from confluent_kafka import KafkaError

from kstreams.log.kafka.broker_requests import BrokerRequests, Encoder, raise_error

_FIND_COORDINATOR = 10
_LEAVE_GROUP = 13
_GROUPS = 0


def coordinator_of(broker: BrokerRequests, group: str) -> str:
    """Return the address of the broker that coordinates a group."""
    response = broker.request(_FIND_COORDINATOR, 1, Encoder().text(group).int8(_GROUPS))
    response.int32()  # the throttle time
    code = response.int16()
    raise_error(f"The coordinator of the group {group!r} is not known", code, response.text())
    response.int32()  # the broker's id
    host = response.text()
    return f"{host}:{response.int32()}"


def remove_member(broker: BrokerRequests, group: str, member: str) -> None:
    """Remove a member from a group that the broker coordinates; nothing happens if it is none."""
    response = broker.request(_LEAVE_GROUP, 3, Encoder().text(group).int32(1).text(member).text(None))
    response.int32()  # the throttle time
    failure = f"The member {member} of the group {group!r} cannot be removed"
    raise_error(failure, response.int16())
    for _ in range(response.int32()):
        response.text()  # the member
        response.text()  # its group.instance.id
        code = response.int16()
        if code != KafkaError.UNKNOWN_MEMBER_ID:
            raise_error(failure, code)
