"""The paper's three experiments, each in one file: what is trained, on what, and how it is judged.

A run of one model with one seed leaves one JSON file, and is not repeated while that is there.
"""
