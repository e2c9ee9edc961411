"""Compiled loops over shards."""
