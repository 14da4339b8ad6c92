"""What a running application measures: recorded by its threads, under the names of Kafka Streams."""
