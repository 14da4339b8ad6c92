"""Apache Kafka as a home of topics. Only this package and the registry client import confluent-kafka."""
