"""Files on the local disk and in object stores, as sinks."""
