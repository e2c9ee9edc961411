"""Scores between data points: exact neighbours, ranks and link scores, never with an n-by-n matrix."""
