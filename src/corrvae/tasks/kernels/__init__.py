"""Compiled loops of the tasks."""
