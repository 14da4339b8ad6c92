"""The native engine: stream threads, state stores on the local disk, changelog topics."""
