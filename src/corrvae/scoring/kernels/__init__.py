"""Compiled loops of the searches; no names are exported from here."""
