"""A cluster that is empty again: tests share one broker."""

from confluent_kafka.admin import AdminClient


def delete_everything(bootstrap_servers: str) -> None:
    """Delete all topics and groups."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    while names := [name for name in admin.list_topics(timeout=30).topics if not name.startswith("__")]:
        for future in admin.delete_topics(names).values():
            future.exception()
    groups = [group.group_id for group in admin.list_consumer_groups().result().valid]
    for future in (admin.delete_consumer_groups(groups) if groups else {}).values():
        future.result()
