"""Faults and crowds that are let loose on a log or an application, for minutes or hours; each is a command."""
