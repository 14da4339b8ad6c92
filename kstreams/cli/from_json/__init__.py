"""Conversion of JSON on the command line into the values of a schema."""
