"""What engines measure, under the names of Kafka Streams, and how it is averaged."""
