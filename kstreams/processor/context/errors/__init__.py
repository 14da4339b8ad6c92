"""What a task does about records that fail or are dropped."""
