"""Payloads of Kafka Connect's JsonConverter: `ConnectJson`."""

from kstreams.serdes.connect.connect_json import ConnectJson

__all__ = ["ConnectJson"]
