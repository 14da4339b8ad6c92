"""The parts of a task that its operators use: current record, contexts, error policies, delayed results."""
