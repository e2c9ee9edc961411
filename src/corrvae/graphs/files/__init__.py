"""Edges from files: what a file is and says, line by line where it must, and errors that name the file and the line.

`reading` opens a file and hands it to `text` or `parquet`; `sniff` finds out how text is laid out, `lines` prepares it
for Arrow, and `coding` numbers ids that are strings.
"""
