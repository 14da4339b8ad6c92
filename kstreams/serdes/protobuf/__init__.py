"""Protobuf: values of topics as messages, framed as a schema registry's clients frame them."""
