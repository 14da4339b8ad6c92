"""The kinds of stores: key-value, window, session and versioned stores, buffers, and custom stores."""
