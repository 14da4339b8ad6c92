"""What users build over Kafka Streams again and again, each a few lines over processors, aggregations and filters."""
