"""Queries of stores: what threads of the user read while an application runs."""
