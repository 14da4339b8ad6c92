"""The kinds of stores: key-value, window, session, versioned, buffers, and custom ones."""
