"""What a task gives its operators: the current record, their context, error policies, held-back results."""
