"""Functions over batches of records, as rows and as columns."""
