"""`map_batch`: functions over batches of records, by rows and by columns."""
