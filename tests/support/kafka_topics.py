"""A cluster that is empty again: tests share one broker."""

import time

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

LOOKS = 600  # of 0.1 s: static members stay in their groups until their session ends
PASSING = (KafkaError.NON_EMPTY_GROUP, KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)


def delete_everything(bootstrap_servers: str) -> None:
    """Delete all topics and groups."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    while names := [name for name in admin.list_topics(timeout=30).topics if not name.startswith("__")]:
        for future in admin.delete_topics(names).values():
            future.exception()
    for group in admin.list_consumer_groups().result().valid:
        _delete_group(admin, group.group_id)


def _delete_group(admin: AdminClient, name: str) -> None:
    for _ in range(LOOKS):
        try:
            admin.delete_consumer_groups([name])[name].result()
        except KafkaException as error:
            if error.args[0].code() not in PASSING:
                raise
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"the group {name} still has members")
