"""Apache Kafka as a home of topics, by confluent-kafka; nothing outside this folder knows that client."""
