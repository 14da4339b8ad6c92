"""Several processes that run one application."""
