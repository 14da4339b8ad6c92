"""Names of operators, stores and topics, and how a topology is described by them."""
